// TestObjectStore: for tests, an ObjectStore in memory whose connections break, lie and refuse as a test says.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_TEST_OBJECT_STORE_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_TEST_OBJECT_STORE_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/objectstore/digest.h"
#include "foundation/objectstore/object_store.h"

namespace foliot {

// What all connections share. Threading: any thread; a test changes the fields while no connection is used.
class TestObjects {
 public:
  void put(const std::string& key, const std::string& content) {
    Digest digest = Digest::md5();
    digest.update(std::as_bytes(std::span(content)));
    objects[key] = {content, to_hex(digest.finish())};
  }

  struct Object {
    std::string content;
    std::string etag;
  };
  std::map<std::string, Object> objects;
  std::string place = "s3://test/models";
  Status list_failure;                     // not ok: what list() fails with
  std::map<std::string, Status> failures;  // of read() and find(), by key
  uint64_t cut_after = UINT64_MAX;         // bytes of each read
  int cuts = 0;                            // that are left; then connections hold
  int damaged_reads = 0;                   // that are left, each with one bit changed
  bool has_etags_of_content = true;
  std::function<void(const std::string& key)> on_read = [](const std::string&) {};

  Mutex mutex;  // held for what follows, and for the objects, by threads
  uint64_t lists = 0;
  uint64_t bytes_read = 0;
  std::vector<std::string> reads;
};

class TestObjectStore : public ObjectStore {
 public:
  explicit TestObjectStore(TestObjects& objects) : all_(objects) {}

  std::string place() const override { return all_.place; }

  Result<std::vector<StoredObject>> list() override {
    const MutexLock lock(all_.mutex);
    ++all_.lists;
    FOLIOT_RETURN_IF_ERROR(all_.list_failure);
    std::vector<StoredObject> objects;
    for (const auto& [key, object] : all_.objects) objects.push_back({key, object.etag, object.content.size()});
    return objects;
  }

  Result<bool> read(const StoredObject& object, uint64_t begin, const OnBytes& on_bytes) override {
    all_.on_read(object.key);
    std::string bytes;
    bool cut = false;
    {
      const MutexLock lock(all_.mutex);
      all_.reads.push_back(object.key);
      FOLIOT_ASSIGN_OR_RETURN(const TestObjects::Object* found, look_up(object.key));
      if (found->etag != object.etag) return Status::not_found("it was changed");
      bytes = found->content.substr(begin);
      if (all_.cuts > 0 && bytes.size() > all_.cut_after) {
        --all_.cuts;
        cut = true;
        bytes.resize(all_.cut_after);
      }
      if (all_.damaged_reads > 0 && !bytes.empty()) {
        --all_.damaged_reads;
        bytes[bytes.size() / 2] ^= 1;
      }
      all_.bytes_read += bytes.size();
    }
    constexpr size_t kPiece = 1000;
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      FOLIOT_RETURN_IF_ERROR(
          on_bytes(std::as_bytes(std::span(bytes)).subspan(at, std::min(kPiece, bytes.size() - at))));
    }
    if (cut) return Status::unavailable("the connection broke");
    return all_.has_etags_of_content;
  }

  Result<std::optional<uint64_t>> part_bytes(const StoredObject&) override { return std::optional<uint64_t>(); }

  Result<StoredObject> find(const std::string& key) override {
    const MutexLock lock(all_.mutex);
    FOLIOT_ASSIGN_OR_RETURN(const TestObjects::Object* found, look_up(key));
    return StoredObject{key, found->etag, found->content.size()};
  }

  Status write(const std::string& key, int file) override {
    const MutexLock lock(all_.mutex);
    if (const auto failure = all_.failures.find(key); failure != all_.failures.end()) return failure->second;
    std::string content(static_cast<size_t>(::lseek(file, 0, SEEK_END)), '\0');
    if (::pread(file, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size())) {
      return Status::internal("cannot read the file");
    }
    all_.put(key, content);
    return Status();
  }

 private:
  Result<const TestObjects::Object*> look_up(const std::string& key) const {
    if (const auto failure = all_.failures.find(key); failure != all_.failures.end()) return failure->second;
    const auto found = all_.objects.find(key);
    if (found == all_.objects.end()) return Status::not_found("there is no object " + key);
    return &found->second;
  }

  TestObjects& all_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_TEST_OBJECT_STORE_H_
