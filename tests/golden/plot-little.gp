# little, for gnuplot 5.2 or newer: `gnuplot little.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'little.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 2694,644 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 1347,322 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'little'.'.'.kind
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
    set lmargin at screen 0.05048
    set rmargin at screen 0.30438
    set tmargin at screen 0.80124
    set bmargin at screen 0.18012
    set xrange [2.97:3.03] noextend
    unset logscale x
    set yrange [2.82:3.18] noextend
    unset logscale y
    set xtics norotate ('2.98' 2.98, '3.00' 3, '3.02' 3.02)
    set ytics norotate ('2.9' 2.9, '3.0' 3, '3.1' 3.1)
    set grid xtics ytics
    set border 3
    set label 'Little to see' at screen 0.00891,0.93789 left font large tc rgb '#222222'
    set label 'y' at screen 0.01188,0.49068 center rotate by 90 tc rgb '#222222'
    set label 'x' at screen 0.17743,0.04969 center tc rgb '#222222'
    set label 'One point' at screen 0.05048,0.83540 left tc rgb '#222222'
    unset key
    plot \
        data index 0 using ($1+0):2 with points pointtype 7 pointsize 0.9  linecolor rgb '#0072b2' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.35932
    set rmargin at screen 0.61915
    set tmargin at screen 0.80124
    set bmargin at screen 0.18012
    set xrange [2.97:3.03] noextend
    unset logscale x
    set yrange [0.87096359:11.48153621] noextend
    set logscale y
    set xtics norotate ('2.98' 2.98, '3.00' 3, '3.02' 3.02)
    set ytics norotate ('1' 1, '2' 2, '5' 5, '10' 10)
    set grid xtics ytics
    set border 3
    set label 'y' at screen 0.32665,0.49068 center rotate by 90 tc rgb '#222222'
    set label 'x' at screen 0.48924,0.04969 center tc rgb '#222222'
    set label 'no figures' at graph 0.5,0.5 center tc rgb '#555555'
    set label 'Gaps alone' at screen 0.35932,0.83540 left tc rgb '#222222'
    unset key
    plot \
        data index 1 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.68523
    set rmargin at screen 0.93393
    set tmargin at screen 0.80124
    set bmargin at screen 0.18012
    set xrange [-0.02:1.02] noextend
    unset logscale x
    set yrange [0:1.06] noextend
    unset logscale y
    set xtics norotate ('0.0' 0, '0.5' 0.5, '1.0' 1)
    set ytics norotate ('0.00' 0, '0.25' 0.25, '0.50' 0.5, '0.75' 0.75, '1.00' 1)
    set grid xtics ytics
    set border 3
    set label 'y' at screen 0.64143,0.49068 center rotate by 90 tc rgb '#222222'
    set label 'x' at screen 0.80958,0.04969 center tc rgb '#222222'
    set label 'no figures' at graph 0.5,0.5 center tc rgb '#555555'
    set label 'Gaps alone' at screen 0.68523,0.83540 left tc rgb '#222222'
    set key at screen 0.93987,0.81366 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        NaN with points pointtype 7 pointsize 0.9 linecolor rgb '#0072b2' title 'one', \
        NaN with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' title 'gaps'
    unset multiplot
    unset output
}
