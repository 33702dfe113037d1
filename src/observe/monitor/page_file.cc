#include "observe/monitor/page_file.h"

#include <algorithm>

namespace foliot {

const PageFile* find_page_file(std::string_view path) {
  constexpr std::string_view kFolder = "/monitor/";
  std::string_view name;
  if (path == "/") {
    name = "index.html";
  } else if (path.starts_with(kFolder)) {
    name = path.substr(kFolder.size());
  }
  const auto found = std::ranges::find(page_files(), name, &PageFile::name);
  return found == page_files().end() ? nullptr : &*found;
}

std::string_view content_type_of(const PageFile& file) {
  if (file.name.ends_with(".html")) return "text/html; charset=utf-8";
  if (file.name.ends_with(".css")) return "text/css; charset=utf-8";
  if (file.name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

}  // namespace foliot
