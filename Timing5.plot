set output 'Timing5.svg
set terminal svg
set multiplot
set grid
set title "Clients duration"
set xlabel "audio cycles"
set ylabel "usec"
plot "/tmp/h-unmodified/keep/pipewire/profile.log" using 10 title "metro/32" with lines
unset multiplot
unset output
