set output 'Timing4.svg
set terminal svg
set multiplot
set grid
set title "Clients scheduling latency"
set xlabel "audio cycles"
set ylabel "usec"
plot "/tmp/h-unmodified/keep/pipewire/profile.log" using 9 title "metro/32" with lines
unset multiplot
unset output
