# long_names, for gnuplot 5.2 or newer: `gnuplot long_names.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'long_names.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1720,1280 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 860,640 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'long_names'.'.'.kind
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
    set lmargin at screen 0.18140
    set rmargin at screen 0.61163
    set tmargin at screen 0.92812
    set bmargin at screen 0.39687
    set xrange [-0.6:23.6] noextend
    unset logscale x
    set yrange [0:2.095938] noextend
    unset logscale y
    set xtics ('gpu0, numa0, vit32x…led_batch1' 0, 'gpu1, numa0, vit32x…led_batch2' 1, 'gpu2, numa0, vit32x…led_batch4' 2, 'gpu3, numa0, vit32x…led_batch8' 3, 'gpu0, numa0, vit32x…ed_batch16' 4, 'gpu1, numa0, vit32x…ed_batch32' 5, 'gpu2, numa0, vit32x…ed_batch64' 6, 'gpu3, numa0, vit32x…led_batch1' 7, 'gpu0, numa0, vit32x…led_batch2' 8, 'gpu1, numa0, vit32x…led_batch4' 9, 'gpu2, numa0, vit32x…led_batch8' 10, 'gpu3, numa0, vit32x…ed_batch16' 11, 'gpu0, numa1, vit32x…ed_batch32' 12, 'gpu1, numa1, vit32x…ed_batch64' 13, 'gpu2, numa1, vit32x…led_batch1' 14, 'gpu3, numa1, vit32x…led_batch2' 15, 'gpu0, numa1, vit32x…led_batch4' 16, 'gpu1, numa1, vit32x…led_batch8' 17, 'gpu2, numa1, vit32x…ed_batch16' 18, 'gpu3, numa1, vit32x…ed_batch32' 19, 'gpu0, numa1, vit32x…ed_batch64' 20, 'gpu1, numa1, vit32x…led_batch1' 21, 'gpu2, numa1, vit32x…led_batch2' 22, 'gpu3, numa1, vit32x…led_batch4' 23) rotate by 90 right
    set ytics norotate ('0.00' 0, '0.25' 0.25, '0.50' 0.5, '0.75' 0.75, '1.00' 1, '1.25' 1.25, '1.50' 1.5, '1.75' 1.75, '2.00' 2)
    set grid noxtics ytics
    set border 3
    set label 'A title that is far too long to stand in one line of a pict…in it, so that its middle goes' at screen 0.01395,0.96875 left font large tc rgb '#222222'
    set label 'simulated' at screen 0.98605,0.96875 right font large tc rgb '#d55e00'
    set label 'Ratio, 1 = no difference' at screen 0.11279,0.66250 center rotate by 90 tc rgb '#222222'
    set label 'Run' at screen 0.39651,0.02500 center tc rgb '#222222'
    set key at screen 0.62093,0.93437 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 0 using ($1-0.07):3:(0):($4-$3) with vectors heads size screen 0.004,90,90 fixed linewidth 1.4 linecolor rgb '#0072b2' notitle, \
        data index 0 using ($1-0.07):2 with points pointtype 7 pointsize 0.9  linecolor rgb '#0072b2' title 'plain', \
        data index 1 using ($1+0.07):3:(0):($4-$3) with vectors heads size screen 0.004,90,90 fixed linewidth 1.4 linecolor rgb '#e69f00' notitle, \
        data index 1 using ($1+0.07):2 with points pointtype 5 pointsize 0.9  linecolor rgb '#e69f00' title 'it''s 100 % "quoted" <b>\n …ong for a key'
    unset multiplot
    unset output
}
