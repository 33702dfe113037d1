#include "engine/container/output_lines.h"

#include <fmt/format.h>

#include "foundation/base/escaped_text.h"

namespace foliot {

void OutputLines::add(Stream stream, std::string_view bytes, TimePoint now) {
  Unfinished& line = unfinished_[stream];
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    append(line, bytes.substr(0, end));
    if (end == std::string_view::npos) break;
    emit(line, now);
    bytes.remove_prefix(end + 1);
  }
  tick(now);
}

void OutputLines::append(Unfinished& line, std::string_view part) {
  const size_t room = kLineBytesMax - line.text.size();
  line.text.append(part.substr(0, room));
  line.cut = line.cut || part.size() > room;
}

void OutputLines::emit(Unfinished& line, TimePoint now) {
  tick(now);
  if (lines_ < kLinesPerSecond) {
    ++lines_;
    if (line.text.ends_with('\r')) line.text.pop_back();
    on_line_(escaped(line.text) + (line.cut ? " ..." : ""));
  } else {
    ++dropped_;
  }
  line.text.clear();
  line.cut = false;
}

void OutputLines::tick(TimePoint now) {
  if (has_begun_ && now - second_began_ < Duration::seconds(1)) return;
  has_begun_ = true;
  second_began_ = now;
  lines_ = 0;
  if (dropped_ == 0) return;
  on_line_(fmt::format("({} lines dropped: more than {} a second)", dropped_, kLinesPerSecond));
  dropped_ = 0;
}

void OutputLines::finish(TimePoint now) {
  for (Unfinished& line : unfinished_) {
    if (!line.text.empty()) emit(line, now);
  }
  tick(now + Duration::seconds(1));
}

}  // namespace foliot
