# timeline, for gnuplot 5.2 or newer: `gnuplot timeline.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'timeline.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1720,1540 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 860,770 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'timeline'.'.'.kind
    set multiplot
    unset label
    set tics nomirror out scale 0.5 textcolor rgb '#555555'
    set border 3 linecolor rgb '#555555'
    set grid linetype 1 linewidth 0.6 linecolor rgb '#dddddd', linetype 1 linewidth 0.6 linecolor rgb '#dddddd'
    set bars 0.6
    set style fill solid
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.07907
    set rmargin at screen 0.85698
    set tmargin at screen 0.94026
    set bmargin at screen 0.74545
    set xrange [-1.198:61.098] noextend
    unset logscale x
    set yrange [0:100] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 10, '' 20, '' 30, '' 40, '' 50, '' 60)
    set ytics norotate ('0' 0, '25' 25, '50' 50, '75' 75, '100' 100)
    set grid xtics ytics
    set border 3
    set label 'Resources over time' at screen 0.01395,0.97403 left font large tc rgb '#222222'
    set label 'GPU utilisation [%]' at screen 0.01860,0.84286 center rotate by 90 tc rgb '#222222'
    set object 1 rectangle from first 0, graph 0 to first 2, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 2 rectangle from first 10, graph 0 to first 19, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 3 rectangle from first 20, graph 0 to first 22, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 4 rectangle from first 30, graph 0 to first 39, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 5 rectangle from first 40, graph 0 to first 42, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 6 rectangle from first 50, graph 0 to first 59, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set key at screen 0.86628,0.94545 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 0 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#0072b2' title 'GPU 0', \
        data index 1 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#e69f00' title 'GPU 1', \
        data index 2 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#009e73' title 'GPU 2', \
        data index 3 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#cc79a7' title 'GPU 3', \
        NaN with boxes fillstyle solid noborder linecolor rgb '#dfe9f3' title 'warm-up', \
        NaN with boxes fillstyle solid noborder linecolor rgb '#f7ead2' title 'measuring'
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.07907
    set rmargin at screen 0.85698
    set tmargin at screen 0.71688
    set bmargin at screen 0.52208
    set xrange [-1.198:61.098] noextend
    unset logscale x
    set yrange [0:14.62539821] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 10, '' 20, '' 30, '' 40, '' 50, '' 60)
    set ytics norotate ('0' 0, '5' 5, '10' 10)
    set grid xtics ytics
    set border 3
    set label 'PCIe [GB/s]' at screen 0.01860,0.61948 center rotate by 90 tc rgb '#222222'
    set object 1 rectangle from first 0, graph 0 to first 2, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 2 rectangle from first 10, graph 0 to first 19, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 3 rectangle from first 20, graph 0 to first 22, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 4 rectangle from first 30, graph 0 to first 39, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 5 rectangle from first 40, graph 0 to first 42, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 6 rectangle from first 50, graph 0 to first 59, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    unset key
    plot \
        data index 4 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 5 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#e69f00' notitle, \
        data index 6 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#009e73' notitle, \
        data index 7 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#cc79a7' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.07907
    set rmargin at screen 0.85698
    set tmargin at screen 0.49351
    set bmargin at screen 0.29870
    set xrange [-1.198:61.098] noextend
    unset logscale x
    set yrange [0:9.750325654] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 10, '' 20, '' 30, '' 40, '' 50, '' 60)
    set ytics norotate ('0.0' 0, '2.5' 2.5, '5.0' 5, '7.5' 7.5)
    set grid xtics ytics
    set border 3
    set label 'GPU memory [GiB]' at screen 0.01860,0.39610 center rotate by 90 tc rgb '#222222'
    set object 1 rectangle from first 0, graph 0 to first 2, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 2 rectangle from first 10, graph 0 to first 19, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 3 rectangle from first 20, graph 0 to first 22, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 4 rectangle from first 30, graph 0 to first 39, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 5 rectangle from first 40, graph 0 to first 42, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 6 rectangle from first 50, graph 0 to first 59, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    unset key
    plot \
        data index 8 using 1:2 with steps linewidth 1.2 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 9 using 1:2 with steps linewidth 1.2 dashtype 1 linecolor rgb '#e69f00' notitle, \
        data index 10 using 1:2 with steps linewidth 1.2 dashtype 1 linecolor rgb '#009e73' notitle, \
        data index 11 using 1:2 with steps linewidth 1.2 dashtype 1 linecolor rgb '#cc79a7' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.07907
    set rmargin at screen 0.85698
    set tmargin at screen 0.27013
    set bmargin at screen 0.07532
    set xrange [-1.198:61.098] noextend
    unset logscale x
    set yrange [0:37.09832953] noextend
    unset logscale y
    set xtics norotate ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50, '60' 60)
    set ytics norotate ('0' 0, '10' 10, '20' 20, '30' 30)
    set grid xtics ytics
    set border 3
    set label 'CPU utilisation [%]' at screen 0.01860,0.17273 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.46802,0.02078 center tc rgb '#222222'
    set object 1 rectangle from first 0, graph 0 to first 2, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 2 rectangle from first 10, graph 0 to first 19, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 3 rectangle from first 20, graph 0 to first 22, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 4 rectangle from first 30, graph 0 to first 39, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set object 5 rectangle from first 40, graph 0 to first 42, graph 1 behind fillcolor rgb '#dfe9f3' fillstyle solid noborder
    set object 6 rectangle from first 50, graph 0 to first 59, graph 1 behind fillcolor rgb '#f7ead2' fillstyle solid noborder
    set key at screen 0.86628,0.27532 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 12 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#000000' title 'all cores'
    unset multiplot
    unset output
}
