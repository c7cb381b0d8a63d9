# law, for gnuplot 5.2 or newer: `gnuplot law.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'law.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1720,888 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 860,444 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'law'.'.'.kind
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
    set lmargin at screen 0.09651
    set rmargin at screen 0.76977
    set tmargin at screen 0.89640
    set bmargin at screen 0.13063
    set xrange [185.0231515:1513.324131] noextend
    set logscale x
    set yrange [180.2259509:10997.47061] noextend
    set logscale y
    set xtics norotate ('256' 256, '512' 512, '768' 768, '1024' 1024)
    set ytics norotate ('200' 200, '500' 500, '1000' 1000, '2000' 2000, '5000' 5000, '10000' 10000)
    set grid xtics ytics
    set border 3
    set label 'Throughput over the model''s width' at screen 0.01395,0.95495 left font large tc rgb '#222222'
    set label 'simulated' at screen 0.98605,0.95495 right font large tc rgb '#d55e00'
    set label 'Throughput [samples/s]' at screen 0.01860,0.51351 center rotate by 90 tc rgb '#222222'
    set label 'Width of the model' at screen 0.43314,0.03604 center tc rgb '#222222'
    set key at screen 0.77907,0.90541 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 0 using 1:3:4 with filledcurves fillstyle transparent solid 0.2 noborder linecolor rgb '#0072b2' title '95 % of a prediction', \
        data index 1 using 1:2 with lines linewidth 1.8 dashtype 2 linecolor rgb '#0072b2' title 'fitted law', \
        data index 2 using ($1+0):3:(0):($4-$3) with vectors heads size screen 0.004,90,90 fixed linewidth 1.4 linecolor rgb '#d55e00' notitle, \
        data index 2 using ($1+0):2 with points pointtype 15 pointsize 0.9  linecolor rgb '#d55e00' title 'measured'
    unset multiplot
    unset output
}
