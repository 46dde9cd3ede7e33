//===- EmulatedTextTest.cpp - What becomes of a CUDA text -----------------===//

#include "test/unit/cuda/EmulatedText.h"

#include <gmock/gmock.h>

using namespace fsdpq::test;
using testing::HasSubstr;

TEST(EmulatedText, HelperWithAsmBecomesTheShims) {
  EmulatedText result = emulateText(R"(#define DEV __device__ \
  __forceinline__
DEV unsigned bf16x2_of(float low, float high) { // not } this
  unsigned d;
  asm("{ cvt.rn.bf16x2.f32 %0, %1, %2; }}" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
template <int N>
DEV void cp_async_wait() { asm volatile("x" ::"n"(N)); }
int bf16x2_of_others;
)");
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.text, R"(#define DEV __device__ \
  __forceinline__
using emulated_helpers::bf16x2_of;




using emulated_helpers::cp_async_wait;

int bf16x2_of_others;
)");
}

TEST(EmulatedText, OverloadsAndSpecialisationsOfOneHelper) {
  EmulatedText result =
      emulateText("void cp_async_wait_1() { asm(\"\"); }\n"
                  "template <> void cp_async_wait<2>() {asm(\"\");}\n"
                  "template <> void cp_async_wait<3>() {asm(\"\");}\n"
                  "void f() { cp_async_wait<2>(); }\n");
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.text, "using emulated_helpers::cp_async_wait_1;\n"
                         "using emulated_helpers::cp_async_wait;\n"
                         "\n"
                         "void f() { cp_async_wait<2>(); }\n");
}

TEST(EmulatedText, HelperWithoutAsmStays) {
  const std::string text = "unsigned short bf16_of(float x) { return 7; }\n"
                           "int f() { if (bf16_of(1)) { return 1; } return 0; }";
  EXPECT_EQ(emulateText(text).text, text);
}

TEST(EmulatedText, AsmOfOthersIsNamedByItsLine) {
  EmulatedText result =
      emulateText("// asm\nconst char *s = \"asm\";\n"
                  "void f() {\n  asm volatile(\"bar.sync 0;\");\n}");
  EXPECT_THAT(result.error, HasSubstr("line 4: asm outside of the helpers"));
}

TEST(EmulatedText, DynamicSharedMemory) {
  EXPECT_EQ(emulateText("extern __shared__ float x[];").text,
            "auto &x = *reinterpret_cast<float (*)[]>(emulatedDynamicShared);");
  EXPECT_EQ(
      emulateText("extern __shared__ __align__(1024)\nunsigned char shared [ ];")
          .text,
      "auto &shared = *reinterpret_cast<unsigned char "
      "(*)[]>(emulatedDynamicShared);\n");
}
