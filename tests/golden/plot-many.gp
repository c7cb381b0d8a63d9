# many, for gnuplot 5.2 or newer: `gnuplot many.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'many.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1720,888 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 860,444 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'many'.'.'.kind
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
    set rmargin at screen 0.88140
    set tmargin at screen 0.89640
    set bmargin at screen 0.13063
    set xrange [-0.9998:50.9898] noextend
    unset logscale x
    set yrange [0:17278000] noextend
    unset logscale y
    set xtics norotate ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50)
    set ytics norotate ('0' 0, '2M' 2000000, '4M' 4000000, '6M' 6000000, '8M' 8000000, '10M' 10000000, '12M' 12000000, '14M' 14000000, '16M' 16000000)
    set grid xtics ytics
    set border 3
    set label 'Sixteen GPUs' at screen 0.01395,0.95495 left font large tc rgb '#222222'
    set label 'Parameters' at screen 0.01860,0.51351 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.48023,0.03604 center tc rgb '#222222'
    set key at screen 0.89070,0.90541 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 0 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#0072b2' title 'GPU 0', \
        data index 1 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#e69f00' title 'GPU 1', \
        data index 2 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#009e73' title 'GPU 2', \
        data index 3 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#cc79a7' title 'GPU 3', \
        data index 4 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#56b4e9' title 'GPU 4', \
        data index 5 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#d55e00' title 'GPU 5', \
        data index 6 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#000000' title 'GPU 6', \
        data index 7 using 1:2 with lines linewidth 1.2 dashtype 1 linecolor rgb '#999999' title 'GPU 7', \
        data index 8 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#0072b2' title 'GPU 8', \
        data index 9 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#e69f00' title 'GPU 9', \
        data index 10 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#009e73' title 'GPU 10', \
        data index 11 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#cc79a7' title 'GPU 11', \
        data index 12 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#56b4e9' title 'GPU 12', \
        data index 13 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#d55e00' title 'GPU 13', \
        data index 14 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#000000' title 'GPU 14', \
        data index 15 using 1:2 with lines linewidth 1.2 dashtype 2 linecolor rgb '#999999' title 'GPU 15'
    unset multiplot
    unset output
}
