// JobFolder: the folder below which all files of jobs lie. Paths of clients are relative to it; what they name, all
// links resolved, must lie below it. The kernel sees to that (openat2, RESOLVE_BENEATH), so nothing can change between
// a check and the opening. No part of a path may begin with a dot: the server's own files do.
//
// Threading: any.
#ifndef FOLIOT_EDGE_JOBS_JOB_FOLDER_H_
#define FOLIOT_EDGE_JOBS_JOB_FOLDER_H_

#include <filesystem>
#include <string>

#include "foundation/base/status.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

class JobFolder {
 public:
  // Makes it if there is none, and its subfolder for the server's own files. Errors: kInvalidArgument naming it.
  static Result<JobFolder> open(const std::filesystem::path& folder);

  // For the server's own files, such as the database.
  std::filesystem::path own() const { return folder_ / ".foliot"; }

  // A file to be read. Errors name the path: kNotFound if there is none, kInvalidArgument if it is not below the
  // folder, or is no file.
  Result<Descriptor> open_file(const std::string& path) const;
  // A new folder, and those that it lies in. Errors: kAlreadyExists if there is one; else as above.
  Status make_folder(const std::string& path) const;
  // A folder that make_folder() made.
  Result<Descriptor> open_folder(const std::string& path) const;
  // Whether two paths name one folder, links resolved; false if either names none.
  bool is_same_folder(const std::string& path, const std::string& other) const;
  // Whether nothing is in it; false if there is none.
  bool is_empty_folder(const std::string& path) const;
  // Removes a folder that is empty still.
  void remove_folder(const std::string& path) const;

 private:
  JobFolder(std::filesystem::path folder, Descriptor descriptor)
      : folder_(std::move(folder)), descriptor_(std::move(descriptor)) {}
  Result<Descriptor> open_below(const std::string& path, int flags) const;

  std::filesystem::path folder_;
  Descriptor descriptor_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_FOLDER_H_
