#include "runtime/comm/gloo/GlooCommunicator.h"

#include "runtime/comm/gloo/GlooChannel.h"

#include <numeric>

namespace fsdpq::rt {
namespace {

class GlooCommunicator final : public Communicator {
public:
  GlooCommunicator(const GlooOptions &options, Rendezvous rendezvous)
      : rank_(options.rank), size_(options.size),
        timeout(options.collectiveTimeout),
        control(options, std::move(rendezvous.links)),
        everybody(static_cast<size_t>(options.size)) {
    std::iota(everybody.begin(), everybody.end(), int64_t(0));
    try {
      dataDevice =
          makeDataDevice(options.bindAddress.empty() ? rendezvous.dataAddress
                                                     : options.bindAddress);
    } catch (const Error &error) {
      abort(error.what());
      throw;
    }
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }

  std::unique_ptr<Channel> openChannel(const std::vector<int64_t> &members,
                                       Device &device, uint16_t stream,
                                       const std::string &name) override {
    return std::make_unique<GlooChannel>(control, dataDevice, timeout, members,
                                         device, stream, name);
  }

  std::vector<std::string> exchange(std::string_view mine,
                                    std::string_view what) override {
    return control.collect(everybody, mine,
                           "the exchange of " + std::string(what));
  }

  void abort(const std::string &cause) noexcept final {
    control.fail({7003, "rank " + std::to_string(rank_) + " failed: " + cause});
  }

  void fail(const Failure &failure) noexcept override {
    control.fail(failure);
  }

  std::optional<Failure> failure() const override { return control.failure(); }

private:
  const int64_t rank_, size_;
  const std::chrono::milliseconds timeout;
  ControlPlane control;
  std::shared_ptr<gloo::transport::Device> dataDevice;
  std::vector<int64_t> everybody;
};

} // namespace

std::unique_ptr<Communicator> connectGloo(const GlooOptions &options) {
  return std::make_unique<GlooCommunicator>(options, meet(options));
}

} // namespace fsdpq::rt
