# boxes, for gnuplot 5.2 or newer: `gnuplot boxes.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'boxes.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1720,888 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 860,444 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'boxes'.'.'.kind
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
    set rmargin at screen 0.78605
    set tmargin at screen 0.89640
    set bmargin at screen 0.13063
    set xrange [-0.6:2.6] noextend
    unset logscale x
    set yrange [0:2.27052] noextend
    unset logscale y
    set xtics norotate ('baseline' 0, 'concurrent' 1, 'isolated' 2)
    set ytics norotate ('0.0' 0, '0.5' 0.5, '1.0' 1, '1.5' 1.5, '2.0' 2)
    set grid noxtics ytics
    set border 3
    set label 'Iteration times by phase' at screen 0.01395,0.95495 left font large tc rgb '#222222'
    set label 'Iteration time [ms]' at screen 0.01860,0.51351 center rotate by 90 tc rgb '#222222'
    set label 'Phase' at screen 0.43256,0.03604 center tc rgb '#222222'
    set key at screen 0.79535,0.90541 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 0 using ($1-0.23333333):3:5:6:4:(0.19833333) with candlesticks whiskerbars 0.5 fillstyle solid 0.35 border linewidth 1.3 linecolor rgb '#0072b2' title 'softmax', \
        data index 0 using ($1-0.23333333):2:2:2:2:(0.1904) with candlesticks linewidth 2.5 linecolor rgb '#0072b2' notitle, \
        data index 1 using ($1+0):3:5:6:4:(0.19833333) with candlesticks whiskerbars 0.5 fillstyle solid 0.35 border linewidth 1.3 linecolor rgb '#e69f00' title 'gemm', \
        data index 1 using ($1+0):2:2:2:2:(0.1904) with candlesticks linewidth 2.5 linecolor rgb '#e69f00' notitle, \
        data index 2 using ($1+0.23333333):3:5:6:4:(0.19833333) with candlesticks whiskerbars 0.5 fillstyle solid 0.35 border linewidth 1.3 linecolor rgb '#009e73' title 'flash_attention_v2', \
        data index 2 using ($1+0.23333333):2:2:2:2:(0.1904) with candlesticks linewidth 2.5 linecolor rgb '#009e73' notitle
    unset multiplot
    unset output
}
