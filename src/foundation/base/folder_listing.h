// list_folder(): what is in a folder, or why it cannot be listed.
//
// Every listing of the tree goes through it: the operators and loops of std::filesystem's directory
// iterators throw when an entry cannot be read, even when they were made with an error_code.
#ifndef FOLIOT_FOUNDATION_BASE_FOLDER_LISTING_H_
#define FOLIOT_FOUNDATION_BASE_FOLDER_LISTING_H_

#include <filesystem>
#include <string>
#include <vector>

#include "foundation/base/status.h"

namespace foliot {

// The entries of `folder` as `folder`/NAME, sorted. No entry is looked at, so one that leads nowhere is listed.
// Errors: kNotFound if there is no such folder, kInternal if it cannot be read; both name it. Any thread.
Result<std::vector<std::filesystem::path>> list_folder(const std::filesystem::path& folder);

// Whether `path` is a folder, links followed. False for an entry that was removed meanwhile.
// Errors: kInvalidArgument for what cannot be looked at (a link to itself or to nothing, a folder without
// rights on the way, a mount that is gone); it names path and reason. Any thread.
Result<bool> leads_to_folder(const std::filesystem::path& path);

// Whether `path` is a regular file, links followed. False if there is none, and for a link that leads to nothing.
// Errors: as of leads_to_folder().
Result<bool> leads_to_file(const std::filesystem::path& path);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_FOLDER_LISTING_H_
