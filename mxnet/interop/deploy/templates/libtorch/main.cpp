// Runs model.pt2, compiled by AOTInductor, with libtorch:  ./predict
// The sample that came with the model is run, and its answers are compared.
#include <ATen/ATen.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

// Reads a list of tensors that Python's `torch.save` wrote.
static std::vector<at::Tensor> read_tensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  std::vector<at::Tensor> tensors;
  const auto list = torch::jit::pickle_load(bytes);
  for (const auto& item : list.toListRef()) tensors.push_back(item.toTensor());
  return tensors;
}

int main() try {
  c10::InferenceMode guard;
  torch::inductor::AOTIModelPackageLoader model("model.pt2");
  auto inputs = read_tensors("sample/inputs.pt");
  model.run(inputs);  // the first run sets things up; the time of the second is shown
  const auto start = std::chrono::steady_clock::now();
  const auto outputs = model.run(inputs);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  const auto expected = read_tensors("sample/outputs.pt");
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto error = (outputs[i].to(at::kDouble) - expected[i].to(at::kDouble)).abs().max();
    const auto largest = expected[i].to(at::kDouble).abs().max().clamp_min(1e-30);
    worst = std::max(worst, (error / largest).item<double>());
  }
  std::printf("largest relative error %.2e\n%.2f ms\n", worst, time.count());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
