set output 'Timing3.svg
set terminal svg
set multiplot
set grid
set title "Clients end date"
set xlabel "audio cycles"
set ylabel "usec"
plot "/tmp/h-unmodified/keep/pipewire/profile.log" using 1 title "Audio period" with lines, "/tmp/h-unmodified/keep/pipewire/profile.log" using 8 title "metro/32" with lines
unset multiplot
unset output
