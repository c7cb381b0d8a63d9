# bars, for gnuplot 5.2 or newer: `gnuplot bars.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'bars.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1720,984 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 860,492 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'bars'.'.'.kind
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
    set rmargin at screen 0.76279
    set tmargin at screen 0.90650
    set bmargin at screen 0.21545
    set xrange [-0.6:5.6] noextend
    unset logscale x
    set yrange [0:13669.76] noextend
    unset logscale y
    set xtics ('vit0x0x0' 0, 'vit32x2x128' 1, 'vit32x4x256' 2, 'vit32x6x512' 3, 'vit16x8x768' 4, 'vit16x12x1024' 5) rotate by 40 right
    set ytics norotate ('0' 0, '2000' 2000, '4000' 4000, '6000' 6000, '8000' 8000, '10000' 10000, '12000' 12000)
    set grid noxtics ytics
    set border 3
    set label 'Throughput by model and by the node that feeds GPU 0' at screen 0.01395,0.95935 left font large tc rgb '#222222'
    set label 'Throughput [samples/s]' at screen 0.01860,0.56098 center rotate by 90 tc rgb '#222222'
    set label 'Model' at screen 0.42965,0.03252 center tc rgb '#222222'
    set key at screen 0.77209,0.91463 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 0 using ($1-0.2):2:($1-0.4):($1+0):(0):2 with boxxyerror fillstyle solid 0.85 noborder linecolor rgb '#0072b2' title 'local node', \
        data index 0 using ($1-0.2):3:(0):($4-$3) with vectors heads size screen 0.004,90,90 fixed linewidth 1.4 linecolor rgb '#222222' notitle, \
        data index 0 using ($1-0.2):($4 > $2 ? $4 : $2):(sprintf('%.0f', $2)) with labels font small offset 0,0.7 tc rgb '#555555' notitle, \
        data index 1 using ($1+0.2):2:($1+0):($1+0.4):(0):2 with boxxyerror fillstyle solid 0.85 noborder linecolor rgb '#e69f00' title 'remote node', \
        data index 1 using ($1+0.2):3:(0):($4-$3) with vectors heads size screen 0.004,90,90 fixed linewidth 1.4 linecolor rgb '#222222' notitle, \
        data index 1 using ($1+0.2):($4 > $2 ? $4 : $2):(sprintf('%.0f', $2)) with labels font small offset 0,0.7 tc rgb '#555555' notitle, \
        data index 2 using 1:2 with lines linewidth 1.8 dashtype 2 linecolor rgb '#000000' title 'what the link carries'
    unset multiplot
    unset output
}
