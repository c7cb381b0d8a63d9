# grid, for gnuplot 5.2 or newer: `gnuplot grid.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'grid.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 2996,1124 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 1498,562 noenhanced font 'sans-serif,12' background rgb '#ffffff'
        large = ',15'; small = ',11'
    }
    set output 'grid'.'.'.kind
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
    set lmargin at screen 0.04005
    set rmargin at screen 0.22697
    set tmargin at screen 0.88612
    set bmargin at screen 0.53025
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory of each GPU' at screen 0.00801,0.96441 left font large tc rgb '#222222'
    set label 'Memory [GiB]' at screen 0.01068,0.70819 center rotate by 90 tc rgb '#222222'
    set label 'GPU 0' at screen 0.04005,0.90569 left tc rgb '#222222'
    unset key
    plot \
        data index 0 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 1 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.27637
    set rmargin at screen 0.46328
    set tmargin at screen 0.88612
    set bmargin at screen 0.53025
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.24700,0.70819 center rotate by 90 tc rgb '#222222'
    set label 'GPU 1' at screen 0.27637,0.90569 left tc rgb '#222222'
    unset key
    plot \
        data index 2 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 3 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.51268
    set rmargin at screen 0.69960
    set tmargin at screen 0.88612
    set bmargin at screen 0.53025
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.48331,0.70819 center rotate by 90 tc rgb '#222222'
    set label 'GPU 2' at screen 0.51268,0.90569 left tc rgb '#222222'
    unset key
    plot \
        data index 4 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 5 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.74900
    set rmargin at screen 0.93591
    set tmargin at screen 0.88612
    set bmargin at screen 0.53025
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.71963,0.70819 center rotate by 90 tc rgb '#222222'
    set label 'GPU 3' at screen 0.74900,0.90569 left tc rgb '#222222'
    set key at screen 0.94126,0.89324 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 6 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' title 'adamw', \
        data index 7 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' title 'sgd'
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.04005
    set rmargin at screen 0.22697
    set tmargin at screen 0.45907
    set bmargin at screen 0.10320
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.01068,0.28114 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.13351,0.02847 center tc rgb '#222222'
    set label 'GPU 4' at screen 0.04005,0.47865 left tc rgb '#222222'
    unset key
    plot \
        data index 8 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 9 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.27637
    set rmargin at screen 0.46328
    set tmargin at screen 0.45907
    set bmargin at screen 0.10320
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.24700,0.28114 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.36983,0.02847 center tc rgb '#222222'
    set label 'GPU 5' at screen 0.27637,0.47865 left tc rgb '#222222'
    unset key
    plot \
        data index 10 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 11 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.51268
    set rmargin at screen 0.69960
    set tmargin at screen 0.45907
    set bmargin at screen 0.10320
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.48331,0.28114 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.60614,0.02847 center tc rgb '#222222'
    set label 'GPU 6' at screen 0.51268,0.47865 left tc rgb '#222222'
    unset key
    plot \
        data index 12 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 13 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.74900
    set rmargin at screen 0.93591
    set tmargin at screen 0.45907
    set bmargin at screen 0.10320
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.71963,0.28114 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.84246,0.02847 center tc rgb '#222222'
    set label 'GPU 7' at screen 0.74900,0.47865 left tc rgb '#222222'
    unset key
    plot \
        data index 14 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 15 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset multiplot
    unset output
}
