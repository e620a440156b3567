//! The `tracing` crate with a non-blocking JSON file writer: one event with an id. Prints ns an event.

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "/tmp".into());
    let (writer, _guard) = tracing_appender::non_blocking(tracing_appender::rolling::never(folder, "tracing.log"));
    tracing_subscriber::fmt().json().with_writer(writer).init();
    let mut batches: Vec<f64> = (0..20)
        .map(|_| {
            let start = std::time::Instant::now();
            (0..5_000u64).for_each(|id| tracing::info!(id, "bench.point"));
            let each = start.elapsed().as_nanos() as f64 / 5_000.0;
            std::thread::sleep(std::time::Duration::from_millis(20));
            each
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    println!("tracing {:.1} 20", batches[10]);
}
