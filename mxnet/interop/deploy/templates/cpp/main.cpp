// Runs model.onnx by ONNX Runtime:  ./predict [input.bin ...]
// Each file holds the numbers of one input, in its own type; without files inputs are zeros.
// With --check the sample that came with the model is run, and its answers are compared.
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

using Bytes = std::vector<char>;

static Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

static size_t size_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return 8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return 2;
    default: return 1;
  }
}

int main(int argc, char** argv) try {
  const bool check = argc == 2 && std::string(argv[1]) == "--check";
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "predict");
  Ort::Session session(env, "model.onnx", Ort::SessionOptions());
  Ort::AllocatorWithDefaultOptions allocator;
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);

  std::vector<std::string> names[2];  // of inputs, of outputs
  std::vector<Bytes> data;
  std::vector<Ort::Value> inputs;
  for (size_t i = 0; i < session.GetInputCount(); ++i) {
    names[0].emplace_back(session.GetInputNameAllocated(i, allocator).get());
    const auto kind = session.GetInputTypeInfo(i);  // it owns what `info` shows
    const auto info = kind.GetTensorTypeAndShapeInfo();
    auto shape = info.GetShape();
    std::replace(shape.begin(), shape.end(), int64_t(-1), int64_t(1));  // sizes that are free
    size_t bytes = size_of(info.GetElementType());
    for (int64_t n : shape) bytes *= size_t(n);
    const std::string sample = "sample/input" + std::to_string(i) + ".bin";
    data.push_back(check ? read_file(sample) : int(i) + 1 < argc ? read_file(argv[i + 1]) : Bytes(bytes));
    if (data.back().size() != bytes)
      throw std::runtime_error(names[0].back() + " needs " + std::to_string(bytes) + " bytes, got " +
                               std::to_string(data.back().size()));
    inputs.push_back(Ort::Value::CreateTensor(memory, data.back().data(), bytes, shape.data(),
                                              shape.size(), info.GetElementType()));
  }
  for (size_t i = 0; i < session.GetOutputCount(); ++i)
    names[1].emplace_back(session.GetOutputNameAllocated(i, allocator).get());
  std::vector<const char*> keys[2];
  for (int side : {0, 1})
    for (const auto& name : names[side]) keys[side].push_back(name.c_str());

  const auto run = [&] {
    return session.Run(Ort::RunOptions{}, keys[0].data(), inputs.data(), inputs.size(),
                       keys[1].data(), keys[1].size());
  };
  if (check) run();  // the first run sets things up; the time of the second is shown
  const auto start = std::chrono::steady_clock::now();
  const auto outputs = run();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;

  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto info = outputs[i].GetTensorTypeAndShapeInfo();
    if (info.GetElementType() != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) continue;
    const float* values = outputs[i].GetTensorData<float>();
    const size_t count = info.GetElementCount();
    std::printf("%s:", names[1][i].c_str());
    for (size_t j = 0; j < std::min<size_t>(count, 10); ++j) std::printf(" %.7g", values[j]);
    std::printf(count > 10 ? " ...\n" : "\n");
    if (!check) continue;
    const Bytes file = read_file("sample/output" + std::to_string(i) + ".bin");
    if (file.size() != count * sizeof(float)) throw std::runtime_error("an output has another size");
    const float* expected = reinterpret_cast<const float*>(file.data());
    double error = 0, largest = 1e-30;
    for (size_t j = 0; j < count; ++j) {
      error = std::max(error, std::fabs(double(values[j]) - expected[j]));
      largest = std::max(largest, std::fabs(double(expected[j])));
    }
    worst = std::max(worst, error / largest);
  }
  if (check) std::printf("largest relative error %.2e\n", worst);
  std::printf("%.2f ms\n", time.count());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
