// OutputLines: what a process prints, as lines that a log may show: escaped, cut, and
// not more of them a second than a log should take.
//
// Threading: none.
#ifndef FOLIOT_ENGINE_CONTAINER_OUTPUT_LINES_H_
#define FOLIOT_ENGINE_CONTAINER_OUTPUT_LINES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "foundation/base/time.h"

namespace foliot {

class OutputLines {
 public:
  static constexpr size_t kLineBytesMax = 1024;  // before they are escaped
  static constexpr uint32_t kLinesPerSecond = 20;

  using OnLine = std::function<void(std::string_view line)>;
  explicit OutputLines(OnLine on_line) : on_line_(std::move(on_line)) {}

  // What was read from each of its two streams, to which lines belong. Lines beyond the
  // limit are dropped; a line that counts them comes with the first line of a later second,
  // or from tick() or finish().
  enum Stream : size_t { kStandardOutput, kStandardError };
  void add(Stream stream, std::string_view bytes, TimePoint now);
  // Time has passed.
  void tick(TimePoint now);
  // No more will come: passes on what has no end of line.
  void finish(TimePoint now);

 private:
  struct Unfinished {
    std::string text;  // at most kLineBytesMax
    bool cut = false;
  };
  void append(Unfinished& line, std::string_view part);
  void emit(Unfinished& line, TimePoint now);

  OnLine on_line_;
  std::array<Unfinished, 2> unfinished_;
  TimePoint second_began_;
  bool has_begun_ = false;
  uint32_t lines_ = 0;    // in this second
  uint64_t dropped_ = 0;  // since the last line that counted them
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_OUTPUT_LINES_H_
