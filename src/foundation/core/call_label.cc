#include "foundation/core/call_label.h"

#include <algorithm>
#include <limits>

namespace foliot {
namespace {

constexpr size_t kCharacterBytesMax = 4;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Where to cut. What is no UTF-8 is cut anywhere.
size_t boundary(std::string_view id) {
  for (size_t end = kCallLabelBytesMax; end > kCallLabelBytesMax - kCharacterBytesMax; --end) {
    if (!continues_character(id[end])) return end;
  }
  return kCallLabelBytesMax;
}

}  // namespace

CallLabel call_label(std::string_view id, std::string_view selection) {
  constexpr size_t kBytesMax = std::numeric_limits<uint32_t>::max();
  const auto bytes = static_cast<uint32_t>(std::min(id.size(), kBytesMax));
  if (id.size() > kCallLabelBytesMax) id = id.substr(0, boundary(id));
  return {std::string(id), bytes, std::string(selection.substr(0, kSelectionTextBytesMax)), {}};
}

}  // namespace foliot
