#include "runtime/comm/gloo/Wire.h"

#include "runtime/comm/gloo/Greeting.h"
#include "runtime/support/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdpq::rt;

namespace {

/// Two ends of a connection.
struct Ends {
  Ends() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0); }
  ~Ends() {
    ::close(both[0]);
    closeWriter();
  }
  void closeWriter() {
    if (both[1] >= 0)
      ::close(both[1]);
    both[1] = -1;
  }
  void say(std::string_view bytes) {
    EXPECT_EQ(::send(both[1], bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

  int both[2];
};

} // namespace

TEST(Wire, BodiesComeBack) {
  const std::string text("a\0b", 3);
  const std::string message =
      BodyWriter().number(-7).text(text).text("").numbers({3, 1}).message(
          MessageKind::Offer);
  EXPECT_EQ(message.substr(0, 8), std::string("FSPQ\x08\0\0\0", 8));
  BodyReader body(std::string_view(message).substr(16));
  EXPECT_EQ(body.number(), -7);
  EXPECT_EQ(body.text(), text);
  EXPECT_EQ(body.text(), "");
  EXPECT_EQ(body.numbers(), (std::vector<int64_t>{3, 1}));
  EXPECT_TRUE(body.isWhole());
  EXPECT_EQ(body.number(), 0);
  EXPECT_FALSE(body.isWhole());
}

TEST(Wire, LengthsBeyondTheBodyAreFound) {
  for (int64_t length : {int64_t(4), int64_t(-1), INT64_MAX, INT64_MIN}) {
    const std::string message =
        BodyWriter().number(length).message(MessageKind::Hello) + "abc";
    BodyReader text(std::string_view(message).substr(16));
    EXPECT_EQ(text.text(), "") << length;
    EXPECT_FALSE(text.isWhole()) << length;
    BodyReader numbers(std::string_view(message).substr(16));
    EXPECT_LE(numbers.numbers().size(), 1u) << length;
  }
}

TEST(Wire, MessagesComeInPieces) {
  Ends ends;
  MessageBuffer in(100);
  const std::string first =
      BodyWriter().text("one").message(MessageKind::Hello);
  const std::string second = BodyWriter().message(MessageKind::Heartbeat);
  const std::string all = first + second + first;
  std::vector<Message> messages;
  for (char byte : all) {
    ends.say({&byte, 1});
    EXPECT_EQ(in.fill(ends.both[0]), MessageBuffer::End::None);
    while (auto message = in.take())
      messages.push_back(*message);
  }
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].kind, MessageKind::Hello);
  EXPECT_EQ(BodyReader(messages[0].body).text(), "one");
  EXPECT_EQ(messages[1].kind, MessageKind::Heartbeat);
  EXPECT_EQ(messages[1].body, "");
  EXPECT_EQ(messages[2].body, messages[0].body);
  EXPECT_EQ(in.received(), all.size());

  ends.say(all);
  ends.closeWriter();
  EXPECT_EQ(in.fill(ends.both[0]), MessageBuffer::End::Closed);
  EXPECT_TRUE(in.take() && in.take() && in.take());
  EXPECT_FALSE(in.take());
}

TEST(Wire, WhatIsNoMessageIsFound) {
  for (const std::string &bytes :
       {std::string("G"), std::string("FSPR"),
        std::string("FSPQ\x01\0\0\0\x65\0\0\0\0\0\0\0", 16)}) {
    Ends ends;
    MessageBuffer in(100);
    ends.say(bytes);
    EXPECT_EQ(in.fill(ends.both[0]), MessageBuffer::End::Garbage);
  }
}

TEST(Greeting, TokensAreTheSameOrNot) {
  EXPECT_TRUE(sameToken("", ""));
  EXPECT_TRUE(sameToken("abc", "abc"));
  for (const auto &[a, b] : std::vector<std::pair<std::string, std::string>>{
           {"", "a"},
           {"a", ""},
           {"abc", "abd"},
           {"abc", "ab"},
           {"aa", "a"},
           {"ab", "abab"},
           {std::string(256, 'a'), ""}}) {
    EXPECT_FALSE(sameToken(a, b)) << a << " " << b;
  }
}

TEST(Greeting, DifferencesAreNamed) {
  GlooOptions options;
  options.rank = 3;
  options.size = 4;
  options.fingerprint = {{"plan hash", "aa"}, {"version", "1"}, {"new", "x"}};
  const Greeting other = greetingOf(options);
  EXPECT_FALSE(differenceOf(other, other));
  // The order is free.
  options.fingerprint = {{"version", "1"}, {"new", "x"}, {"plan hash", "aa"}};
  EXPECT_FALSE(differenceOf(other, greetingOf(options)));

  options.fingerprint = {{"version", "1"}, {"plan hash", "bb"}, {"old", "y"}};
  const auto difference = differenceOf(other, greetingOf(options));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->id, 7013);
  EXPECT_EQ(difference->text,
            "rank 3 has another new than rank 0: 'x' and none; "
            "rank 3 has another old than rank 0: none and 'y'; "
            "rank 3 has another plan hash than rank 0: 'aa' and 'bb'");
  Greeting newer = other;
  newer.protocol += 1;
  EXPECT_EQ(differenceOf(newer, other)->id, 7013);
}

TEST(Greeting, OptionsThatCannotBeAreRefused) {
  const auto refuse = [](auto change) {
    GlooOptions options;
    options.rank = 1;
    options.size = 2;
    options.masterPort = 1;
    options.connectTimeout = std::chrono::milliseconds(1);
    change(options);
    try {
      connectGloo(options);
    } catch (const Error &error) {
      return error.id();
    }
    return 0;
  };
  using std::chrono::milliseconds;
  EXPECT_EQ(refuse([](GlooOptions &) {}), 7011);
  EXPECT_EQ(refuse([](GlooOptions &o) { o.rank = 2; }), 7019);
  EXPECT_EQ(refuse([](GlooOptions &o) { o.rank = -1; }), 7019);
  EXPECT_EQ(refuse([](GlooOptions &o) { o.size = 0; }), 7019);
  EXPECT_EQ(refuse([](GlooOptions &o) { o.masterPort = 0; }), 7019);
  EXPECT_EQ(refuse([](GlooOptions &o) { o.silenceLimit = milliseconds(999); }),
            7019);
  EXPECT_EQ(
      refuse([](GlooOptions &o) { o.collectiveTimeout = milliseconds(0); }),
      7019);
  EXPECT_EQ(refuse([](GlooOptions &o) {
              o.rank = 0;
              o.size = 1;
              o.bindAddress = "192.0.2.1"; // of nobody
            }),
            7017);
}
