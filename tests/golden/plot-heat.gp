# heat, for gnuplot 5.2 or newer: `gnuplot heat.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'heat.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1720,560 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 860,280 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'heat'.'.'.kind
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
    set lmargin at screen 0.06512
    set rmargin at screen 0.88837
    set tmargin at screen 0.83571
    set bmargin at screen 0.20714
    set xrange [-0.5:3.5] noextend
    unset logscale x
    set yrange [3.5:-0.5] noextend
    unset logscale y
    set xtics norotate ('vit0x0x0' 0, 'vit32x2x128' 1, 'vit32x6x512' 2, 'vit16x12x1024' 3)
    set ytics norotate ('GPU 0' 0, 'GPU 1' 1, 'GPU 2' 2, 'GPU 3' 3)
    set grid noxtics noytics
    set border 0
    set label 'What the remote node costs' at screen 0.01395,0.92857 left font large tc rgb '#222222'
    set label 'simulated' at screen 0.98605,0.92857 right font large tc rgb '#d55e00'
    set label 'Model' at screen 0.47674,0.05714 center tc rgb '#222222'
    set palette defined (0 '#0071b1', 0.5 '#f7f7f7', 1 '#d45d00')
    set cbrange [-21.5:21.5]
    set colorbox user origin screen 0.90233,0.20714 size screen 0.01395,0.62857 noborder
    set cbtics scale 0.4 font small tc rgb '#555555'
    set label 'Penalty [%]' at screen 0.98605,0.52143 center rotate by 90 tc rgb '#222222'
    unset key
    plot \
        data index 0 using (valid(3) ? $1 : NaN):2:($1-0.485):($1+0.485):($2-0.46):($2+0.46):3 with boxxyerror fillstyle solid noborder linecolor palette notitle, \
        data index 0 using 1:2:4:5 with labels font small textcolor rgb variable notitle
    unset multiplot
    unset output
}
