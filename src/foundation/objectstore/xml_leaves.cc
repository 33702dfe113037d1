#include "foundation/objectstore/xml_leaves.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

namespace foliot {
namespace {

constexpr size_t kDepthMax = 32;
constexpr std::string_view kSpaces = " \t\r\n";

Status malformed(std::string_view why) { return Status::invalid_argument(fmt::format("the XML {}", why)); }

void append_utf8(uint32_t code, std::string& to) {
  const auto put = [&](uint32_t byte) { to += static_cast<char>(byte); };
  const auto put_rest = [&](uint32_t shift) { put(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6)), put_rest(0);
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12)), put_rest(6), put_rest(0);
  } else {
    put(0xf0 | (code >> 18)), put_rest(12), put_rest(6), put_rest(0);
  }
}

// `name`: between '&' and ';'.
Status append_reference(std::string_view name, std::string& to) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kNamed{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  for (const auto& [known, letter] : kNamed) {
    if (name == known) return to += letter, Status();
  }
  if (!name.starts_with('#')) return malformed(fmt::format("has an unknown entity '{}'", name));
  name.remove_prefix(1);
  const bool is_hex = name.starts_with('x');
  if (is_hex) name.remove_prefix(1);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code, is_hex ? 16 : 10);
  const bool is_surrogate = 0xd800 <= code && code < 0xe000;
  if (error != std::errc() || end != name.data() + name.size() || code == 0 || code > 0x10ffff || is_surrogate) {
    return malformed(fmt::format("has a reference to no character, '{}'", name));
  }
  return append_utf8(code, to), Status();
}

Status append_text(std::string_view text, std::string& to) {
  while (!text.empty()) {
    const size_t reference = text.find('&');
    to += text.substr(0, reference);
    if (reference == text.npos) return Status();
    text.remove_prefix(reference + 1);
    const size_t end = text.find(';');
    if (end == text.npos) return malformed("has a '&' without ';'");
    FOLIOT_RETURN_IF_ERROR(append_reference(text.substr(0, end), to));
    text.remove_prefix(end + 1);
  }
  return Status();
}

class XmlReading {
 public:
  XmlReading(std::string_view xml, const OnXmlEnd& on_end) : rest_(xml), on_end_(on_end) {}

  Status read() {
    while (true) {
      const size_t tag = rest_.find('<');
      const std::string_view text = rest_.substr(0, tag);
      if (begins_.empty() && text.find_first_not_of(kSpaces) != text.npos)
        return malformed("has text outside elements");
      FOLIOT_RETURN_IF_ERROR(append_text(text, text_));
      if (tag == rest_.npos) break;
      rest_.remove_prefix(tag + 1);
      FOLIOT_RETURN_IF_ERROR(read_tag());
    }
    return begins_.empty() ? Status() : malformed(fmt::format("ends within '{}'", path_));
  }

 private:
  // Takes what comes before `end`, and that.
  Result<std::string_view> take_until(std::string_view end) {
    const size_t at = rest_.find(end);
    if (at == rest_.npos) return malformed(fmt::format("has no '{}' where it must", end));
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return taken;
  }

  Status read_tag() {
    constexpr std::string_view kData = "![CDATA[";
    if (rest_.starts_with("?")) return take_until("?>").status();
    if (rest_.starts_with("!--")) return take_until("-->").status();
    if (rest_.starts_with(kData)) {
      rest_.remove_prefix(kData.size());
      FOLIOT_ASSIGN_OR_RETURN(const std::string_view data, take_until("]]>"));
      text_ += data;
      return begins_.empty() ? malformed("has text outside elements") : Status();
    }
    if (rest_.starts_with("!")) return malformed("has a document type, which is refused");
    FOLIOT_ASSIGN_OR_RETURN(std::string_view tag, take_until(">"));
    if (tag.starts_with('/')) return end(tag.substr(1));
    const bool is_empty = tag.ends_with('/');
    if (is_empty) tag.remove_suffix(1);
    const std::string_view name = tag.substr(0, tag.find_first_of(kSpaces));
    FOLIOT_RETURN_IF_ERROR(begin(name));
    return is_empty ? end(name) : Status();
  }

  Status begin(std::string_view name) {
    if (name.empty() || name.find_first_of("/<&'\"") != name.npos) return malformed("has an element without a name");
    if (begins_.size() == kDepthMax) return malformed(fmt::format("has elements more than {} deep", kDepthMax));
    begins_.push_back(path_.size());
    if (!path_.empty()) path_ += '/';
    path_ += name;
    text_.clear();
    return Status();
  }

  Status end(std::string_view name) {
    name = name.substr(0, name.find_first_of(kSpaces));
    if (begins_.empty()) return malformed(fmt::format("closes '{}', which is not open", name));
    const size_t begin = begins_.back() + (begins_.size() > 1 ? 1 : 0);
    if (std::string_view(path_).substr(begin) != name) {
      return malformed(fmt::format("closes '{}' in '{}'", name, path_));
    }
    FOLIOT_RETURN_IF_ERROR(on_end_(path_, text_));
    path_.resize(begins_.back());
    begins_.pop_back();
    text_.clear();
    return Status();
  }

  std::string_view rest_;
  const OnXmlEnd& on_end_;
  std::string path_;
  std::vector<size_t> begins_;  // of the open elements in `path_`
  std::string text_;
};

}  // namespace

Status read_xml_leaves(std::string_view xml, const OnXmlEnd& on_end) { return XmlReading(xml, on_end).read(); }

}  // namespace foliot
