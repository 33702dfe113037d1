// PageFile: a file of the monitor page, from src/observe/monitor/page, as it is embedded here.
//
// Threading: constants; any thread.
#ifndef FOLIOT_OBSERVE_MONITOR_PAGE_FILE_H_
#define FOLIOT_OBSERVE_MONITOR_PAGE_FILE_H_

#include <span>
#include <string_view>

namespace foliot {

struct PageFile {
  std::string_view name;  // "page.js"
  std::string_view content;
};

// All of them. Made by cmake/embed.cmake.
std::span<const PageFile> page_files();

// The file at this path of the metrics port, "/" or "/monitor/NAME"; nullptr: there is none.
const PageFile* find_page_file(std::string_view path);
// By the ending of its name: "text/html; charset=utf-8".
std::string_view content_type_of(const PageFile& file);

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_MONITOR_PAGE_FILE_H_
