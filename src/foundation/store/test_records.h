// For tests: records of text.
#ifndef FOLIOT_FOUNDATION_STORE_TEST_RECORDS_H_
#define FOLIOT_FOUNDATION_STORE_TEST_RECORDS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/store/log_files.h"

namespace foliot {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Keeps all of them.
class TextReader : public LogReader {
 public:
  Status on_snapshot(std::span<const std::byte> piece) override {
    pieces.push_back(text_of(piece));
    return Status();
  }
  Status on_record(uint64_t, std::span<const std::byte> record) override {
    records.push_back(text_of(record));
    return Status();
  }
  std::vector<std::string> pieces;
  std::vector<std::string> records;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_STORE_TEST_RECORDS_H_
