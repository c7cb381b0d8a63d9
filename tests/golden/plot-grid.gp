# grid, for gnuplot 5.2 or newer: `gnuplot grid.gp`, here, draws it anew.
set encoding utf8
set decimalsign '.'
data = 'grid.dat'
do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 2996,1112 noenhanced font 'Sans,9' fontscale 2 linewidth 2 pointscale 2 background rgb '#ffffff'
        large = ',11.5'; small = ',8.5'
    } else {
        set terminal svg size 1498,556 noenhanced font 'sans-serif,12' background rgb '#ffffff'
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
    set lmargin at screen 0.03738
    set rmargin at screen 0.22697
    set tmargin at screen 0.88489
    set bmargin at screen 0.52518
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory of each GPU' at screen 0.00801,0.96403 left font large tc rgb '#222222'
    set label 'Memory [GiB]' at screen 0.01068,0.70504 center rotate by 90 tc rgb '#222222'
    set label 'GPU 0' at screen 0.03738,0.90468 left tc rgb '#222222'
    unset key
    plot \
        data index 0 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 1 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.27370
    set rmargin at screen 0.46328
    set tmargin at screen 0.88489
    set bmargin at screen 0.52518
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.24700,0.70504 center rotate by 90 tc rgb '#222222'
    set label 'GPU 1' at screen 0.27370,0.90468 left tc rgb '#222222'
    unset key
    plot \
        data index 2 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 3 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.51001
    set rmargin at screen 0.69960
    set tmargin at screen 0.88489
    set bmargin at screen 0.52518
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.48331,0.70504 center rotate by 90 tc rgb '#222222'
    set label 'GPU 2' at screen 0.51001,0.90468 left tc rgb '#222222'
    unset key
    plot \
        data index 4 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 5 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.74633
    set rmargin at screen 0.93591
    set tmargin at screen 0.88489
    set bmargin at screen 0.52518
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('' 0, '' 50, '' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.71963,0.70504 center rotate by 90 tc rgb '#222222'
    set label 'GPU 3' at screen 0.74633,0.90468 left tc rgb '#222222'
    set key at screen 0.94126,0.89209 left top vertical maxcols 1 Left reverse samplen 2 spacing 1.15 font small tc rgb '#222222'
    plot \
        data index 6 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' title 'adamw', \
        data index 7 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' title 'sgd'
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.03738
    set rmargin at screen 0.22697
    set tmargin at screen 0.45324
    set bmargin at screen 0.09353
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.01068,0.27338 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.13218,0.02878 center tc rgb '#222222'
    set label 'GPU 4' at screen 0.03738,0.47302 left tc rgb '#222222'
    unset key
    plot \
        data index 8 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 9 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.27370
    set rmargin at screen 0.46328
    set tmargin at screen 0.45324
    set bmargin at screen 0.09353
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.24700,0.27338 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.36849,0.02878 center tc rgb '#222222'
    set label 'GPU 5' at screen 0.27370,0.47302 left tc rgb '#222222'
    unset key
    plot \
        data index 10 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 11 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.51001
    set rmargin at screen 0.69960
    set tmargin at screen 0.45324
    set bmargin at screen 0.09353
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.48331,0.27338 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.60481,0.02878 center tc rgb '#222222'
    set label 'GPU 6' at screen 0.51001,0.47302 left tc rgb '#222222'
    unset key
    plot \
        data index 12 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 13 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset label
    unset object
    unset colorbox
    set lmargin at screen 0.74633
    set rmargin at screen 0.93591
    set tmargin at screen 0.45324
    set bmargin at screen 0.09353
    set xrange [-2.38:121.38] noextend
    unset logscale x
    set yrange [0:24] noextend
    unset logscale y
    set xtics norotate ('0' 0, '50' 50, '100' 100)
    set ytics norotate ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
    set grid xtics ytics
    set border 3
    set label 'Memory [GiB]' at screen 0.71963,0.27338 center rotate by 90 tc rgb '#222222'
    set label 'Time [s]' at screen 0.84112,0.02878 center tc rgb '#222222'
    set label 'GPU 7' at screen 0.74633,0.47302 left tc rgb '#222222'
    unset key
    plot \
        data index 14 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#0072b2' notitle, \
        data index 15 using 1:2 with lines linewidth 1.8 dashtype 1 linecolor rgb '#e69f00' notitle
    unset multiplot
    unset output
}
