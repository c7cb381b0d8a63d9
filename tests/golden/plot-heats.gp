# heats, for gnuplot 5.2 or newer: `gnuplot heats.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'heats.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 2384,504 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 1192,252 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'heats'.'.'.kind
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
    set lmargin at screen 0.04698
    set rmargin at screen 0.41946
    set tmargin at screen 0.74603
    set bmargin at screen 0.23016
    set xrange [-0.5:3.5] noextend
    unset logscale x
    set yrange [1.5:-0.5] noextend
    unset logscale y
    set xtics norotate ('node 0' 0, 'node 1' 1, 'node 2' 2, 'node 3' 3)
    set ytics norotate ('GPU 0' 0, 'GPU 1' 1)
    set grid noxtics noytics
    set border 0
    set label 'Copies' at screen 0.01007,0.92063 left font large tc rgb '#222222'
    set label 'Node of the memory' at screen 0.23322,0.06349 center tc rgb '#222222'
    set label 'Host to device' at screen 0.04698,0.78968 left tc rgb '#222222'
    set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#2171b5', 1 '#08306b')
    set cbrange [0:25.1]
    set colorbox user origin screen 0.42953,0.23016 size screen 0.01007,0.51587 noborder
    set cbtics scale 0.4 font small tc rgb '#555555'
    set label 'Bandwidth [GB/s]' at screen 0.48993,0.48810 center rotate by 90 tc rgb '#222222'
    unset key
    plot \
        data index 0 using (valid(3) ? $1 : NaN):2:($1-0.485):($1+0.485):($2-0.46):($2+0.46):3 with boxxyerror fillstyle solid noborder linecolor palette notitle, \
        data index 0 using 1:2:4:5 with labels font small textcolor rgb variable notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.54698
    set rmargin at screen 0.91946
    set tmargin at screen 0.74603
    set bmargin at screen 0.23016
    set xrange [-0.5:3.5] noextend
    unset logscale x
    set yrange [1.5:-0.5] noextend
    unset logscale y
    set xtics norotate ('node 0' 0, 'node 1' 1, 'node 2' 2, 'node 3' 3)
    set ytics norotate ('GPU 0' 0, 'GPU 1' 1)
    set grid noxtics noytics
    set border 0
    set label 'Node of the memory' at screen 0.73322,0.06349 center tc rgb '#222222'
    set label 'Device to host' at screen 0.54698,0.78968 left tc rgb '#222222'
    set palette defined (0 '#f7fbff', 0.35 '#9ecae1', 0.7 '#2171b5', 1 '#08306b')
    set cbrange [0:25.1]
    set colorbox user origin screen 0.92953,0.23016 size screen 0.01007,0.51587 noborder
    set cbtics scale 0.4 font small tc rgb '#555555'
    set label 'Bandwidth [GB/s]' at screen 0.98993,0.48810 center rotate by 90 tc rgb '#222222'
    unset key
    plot \
        data index 1 using (valid(3) ? $1 : NaN):2:($1-0.485):($1+0.485):($2-0.46):($2+0.46):3 with boxxyerror fillstyle solid noborder linecolor palette notitle, \
        data index 1 using 1:2:4:5 with labels font small textcolor rgb variable notitle
    unset multiplot
    unset output
}
