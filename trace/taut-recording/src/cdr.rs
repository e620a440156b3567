//! XCDR1 little endian, as ROS 2 has it: just numbers, strings and sequences. By hand, because
//! batches of columns must go through as block copies; the serde-based crates go element by element.

/// Encapsulation header: CDR, little endian, no options.
const HEADER: [u8; 4] = [0, 1, 0, 0];

/// A number that CDR aligns to its own size.
pub trait Number: Copy + Default {
    /// In bytes.
    const SIZE: usize = size_of::<Self>();
    /// Appends it.
    fn put(self, out: &mut Vec<u8>);
    /// Of as many bytes as it has.
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($t:ty),*) => {$(impl Number for $t {
        fn put(self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.to_le_bytes());
        }
        fn take(bytes: &[u8]) -> Self {
            bytes.try_into().map(<$t>::from_le_bytes).unwrap_or_default()
        }
    })*};
}
numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

/// Writes one message.
pub struct Encoder(Vec<u8>);

impl Encoder {
    /// An empty message.
    #[expect(clippy::new_without_default, reason = "an encoder is begun, not defaulted")]
    pub fn new() -> Encoder {
        Encoder(HEADER.to_vec())
    }

    /// Appends a number, aligned.
    pub fn number<T: Number>(mut self, value: T) -> Self {
        self.align(T::SIZE);
        value.put(&mut self.0);
        self
    }

    /// Appends a string.
    pub fn string(self, text: &str) -> Self {
        let mut out = self.number(text.len() as u32 + 1);
        out.0.extend_from_slice(text.as_bytes());
        out.0.push(0);
        out
    }

    /// Appends a sequence of numbers.
    pub fn sequence<T: Number>(self, values: impl ExactSizeIterator<Item = T>) -> Self {
        let mut out = self.number(values.len() as u32);
        // The padding belongs to the first element: an empty sequence has none.
        if values.len() > 0 {
            out.align(T::SIZE);
        }
        out.0.reserve(values.len() * T::SIZE);
        for value in values {
            value.put(&mut out.0);
        }
        out
    }

    /// Bytes so far.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// The message.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Alignment counts from behind the header.
    fn align(&mut self, size: usize) {
        while !(self.0.len() - HEADER.len()).is_multiple_of(size) {
            self.0.push(0);
        }
    }
}

/// Reads one message; every read is checked, `None` is "these bytes are not that".
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// `None` when it is not little-endian CDR.
    pub fn new(message: &'a [u8]) -> Option<Decoder<'a>> {
        Some(Decoder { bytes: message.strip_prefix(&HEADER)?, at: 0 })
    }

    /// The next number.
    pub fn number<T: Number>(&mut self) -> Option<T> {
        self.at = self.at.next_multiple_of(T::SIZE);
        self.take(T::SIZE).map(T::take)
    }

    /// The next string.
    pub fn string(&mut self) -> Option<String> {
        let length = self.number::<u32>()? as usize;
        let bytes = self.take(length)?;
        Some(String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned())
    }

    /// A sequence as an iterator over its elements, straight from the bytes.
    pub fn sequence<T: Number>(&mut self) -> Option<impl ExactSizeIterator<Item = T> + use<'a, T>> {
        let length = self.number::<u32>()? as usize;
        if length > 0 {
            self.at = self.at.next_multiple_of(T::SIZE);
        }
        let bytes = self.take(length.checked_mul(T::SIZE)?)?;
        Some(bytes.chunks_exact(T::SIZE).map(T::take))
    }

    /// Bytes that are not read yet.
    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(bytes)
    }
}
