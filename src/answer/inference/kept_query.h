// KeptQuery: a query whose names outlive start(), for a layer that passes it on later. The
// inputs' bytes stay with the caller.
#ifndef FOLIOT_ANSWER_INFERENCE_KEPT_QUERY_H_
#define FOLIOT_ANSWER_INFERENCE_KEPT_QUERY_H_

#include <string>
#include <string_view>

#include "answer/inference/query.h"

namespace foliot {

class KeptQuery {
 public:
  explicit KeptQuery(const Query& query) : query_(query) {
    size_t size =
        query.name.size() + query.version.size() + query.id.size() + query.context.size() + query.traceparent.size();
    for (const TensorView& input : query.inputs) size += input.name.size() + input.datatype.size();
    for (const std::string_view output : query.outputs) size += output.size();
    text_.reserve(size);
    keep(query_.name);
    keep(query_.version);
    keep(query_.id);
    keep(query_.context);
    keep(query_.traceparent);
    for (TensorView& input : query_.inputs) {
      keep(input.name);
      keep(input.datatype);
    }
    for (std::string_view& output : query_.outputs) keep(output);
  }
  KeptQuery(const KeptQuery&) = delete;
  KeptQuery& operator=(const KeptQuery&) = delete;
  const Query& query() const { return query_; }

 private:
  void keep(std::string_view& text) {
    const size_t at = text_.size();
    text_ += text;
    text = std::string_view(text_).substr(at);
  }

  std::string text_;
  Query query_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_KEPT_QUERY_H_
