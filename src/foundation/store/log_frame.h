// Frames: how records stand in the files of the log.
//
//   file:   header, frame, frame, ...
//   header: "foliolog", sequence, after, first, salt, checksum (8 bytes each, little-endian)
//   frame:  checksum (8), number (8), length (4), behind (4), the record's bytes
//
// Checksums are XXH3 and the file's salt, which is random: no client can send a record that
// contains a valid frame. `behind` is how many records before this one were not synced when it
// was written: so a frame proves that all before them once lasted, and a damaged frame can be
// distinguished from one that was being written when the machine stopped.
#ifndef FOLIOT_FOUNDATION_STORE_LOG_FRAME_H_
#define FOLIOT_FOUNDATION_STORE_LOG_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace foliot {

constexpr size_t kLogHeaderBytes = 48;
constexpr size_t kFrameHeaderBytes = 24;
constexpr size_t kRecordBytesMax = 1 << 20;

struct LogHeader {
  uint64_t sequence = 0;  // of this file among all
  uint64_t after = 0;     // records of earlier files beyond this number do not count: they were refused
  uint64_t first = 0;     // number of its first record
  uint64_t salt = 0;
};

struct LogFrame {
  uint64_t number = 0;
  uint64_t synced = 0;  // all records up to this number lasted when this one was written
  std::span<const std::byte> bytes;

  size_t size() const { return kFrameHeaderBytes + bytes.size(); }
};

void append_header(std::vector<std::byte>& file, const LogHeader& header);
// nullopt: there is no valid one.
std::optional<LogHeader> read_header(std::span<const std::byte> file);

// REQUIRES: synced < number, by less than 2^32; at most kRecordBytesMax bytes.
void append_frame(std::vector<std::byte>& file, uint64_t salt, const LogFrame& frame);
// nullopt: there is no valid one at this offset.
std::optional<LogFrame> read_frame(std::span<const std::byte> file, size_t offset, uint64_t salt);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_LOG_FRAME_H_
