//! MCAP's records as bytes: opcodes, the head of a record, a chunk and its checksum.

pub(crate) const MAGIC: [u8; 8] = [0x89, b'M', b'C', b'A', b'P', 0x30, b'\r', b'\n'];
/// The compression field of a chunk header: length 4, "zstd".
pub(crate) const SIGNATURE: &[u8] = b"\x04\0\0\0zstd";
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// From a chunk's first byte to its signature, and to its compressed records.
pub(crate) const TO_SIGNATURE: usize = 37;
pub(crate) const TO_RECORDS: usize = 53;
/// Of a chunk's declared length, what is not compressed records.
pub(crate) const CHUNK_FIXED: u64 = 44;
/// Chunks of ours are closed at 512 KiB; a hostile file must not ask for more memory than this.
pub(crate) const MAX_CHUNK_BYTES: usize = 16 << 20;
pub(crate) const MESSAGE: u8 = 0x05;
pub(crate) const CHUNK: u8 = 0x06;
pub(crate) const MESSAGE_INDEX: u8 = 0x07;
/// The channel's number, and the list's length in bytes.
pub(crate) const MESSAGE_INDEX_HEAD: u64 = 6;
/// A message's time and place in the chunk.
pub(crate) const MESSAGE_INDEX_ENTRY: u64 = 16;
pub(crate) const HEADER: u8 = 0x01;
pub(crate) const METADATA: u8 = 0x0c;

/// Those of the chunk besides.
pub(crate) fn is_known_or_chunk(opcode: u8) -> bool {
    opcode == CHUNK || is_known(opcode)
}

/// The records of a whole chunk record, if its checksum is right.
pub(crate) fn records_of(chunk: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize| Some(u64::from_le_bytes(chunk.get(at..at + 8)?.try_into().ok()?));
    let size = usize::try_from(number(25)?).ok().filter(|size| *size <= MAX_CHUNK_BYTES)?;
    let is_zstd = chunk.get(TO_SIGNATURE..TO_SIGNATURE + SIGNATURE.len())? == SIGNATURE;
    let length = usize::try_from(number(45)?).ok()?;
    let compressed = chunk.get(TO_RECORDS..)?.get(..length).filter(|_| is_zstd)?;
    let records = zstd::bulk::decompress(compressed, size).ok()?;
    (records.len() == size && crc32fast::hash(&records).to_le_bytes() == chunk[33..37]).then_some(records)
}

/// Opcodes that may stand between our chunks: all of MCAP's but the chunk, and private ones.
pub(crate) fn is_known(opcode: u8) -> bool {
    matches!(opcode, 0x01..=0x05 | 0x07..=0x0f | 0x80..)
}

pub(crate) fn split_record(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(9)?;
    let length = usize::try_from(u64::from_le_bytes(head[1..].try_into().ok()?)).ok()?;
    let (body, rest) = rest.split_at_checked(length)?;
    Some((head[0], body, rest))
}

pub(crate) fn string(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_at_checked(4)?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(length.try_into().ok()?) as usize)?;
    Some((String::from_utf8_lossy(text).into_owned(), rest))
}
