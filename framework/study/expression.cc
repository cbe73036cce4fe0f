#include "framework/study/expression.h"

#include <cctype>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "framework/core/error.h"

namespace dtrain {

struct Expression::Node {
  char kind =
      'n';  // 'n': a number, 'v': a named value, else the operator; '~' is the sign of `left`
  double number = 0;
  NamedValue named;
  std::shared_ptr<const Node> left, right;
};

namespace {

using Node = Expression::Node;
using NodePtr = std::shared_ptr<const Node>;

// Reads by recursive descent: sums of products of factors.
class ExpressionParser {
 public:
  explicit ExpressionParser(const std::string& text) : text_(text) {}

  NodePtr Parse() {
    NodePtr root = Sum();
    if (Peek() != 0) Fail("an operator");
    return root;
  }

 private:
  NodePtr Sum() {
    NodePtr left = Product();
    while (Peek() == '+' || Peek() == '-') left = Binary(left, &ExpressionParser::Product);
    return left;
  }
  NodePtr Product() {
    NodePtr left = Factor();
    while (Peek() == '*' || Peek() == '/') left = Binary(left, &ExpressionParser::Factor);
    return left;
  }
  NodePtr Binary(const NodePtr& left, NodePtr (ExpressionParser::*operand)()) {
    const char kind = text_[at_++];
    return std::make_shared<Node>(Node{kind, 0, {}, left, (this->*operand)()});
  }
  NodePtr Factor() {
    const char next = Peek();
    if (++depth_ > kDeepest) Fail("fewer parentheses");
    NodePtr factor;
    if (next == '(') {
      ++at_;
      factor = Sum();
      Expect(')');
    } else if (next == '-') {
      ++at_;
      factor = std::make_shared<Node>(Node{'~', 0, {}, Factor(), nullptr});
    } else if (std::isdigit(static_cast<unsigned char>(next)) != 0 || next == '.') {
      factor = Number();
    } else if (std::isalpha(static_cast<unsigned char>(next)) != 0 || next == '_') {
      factor = Named();
    } else {
      Fail("a number, a name or '('");
    }
    --depth_;
    return factor;
  }
  NodePtr Number() {
    Node node;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), node.number);
    if (error != std::errc()) Fail("a number");
    at_ += static_cast<size_t>(end - begin);
    return std::make_shared<Node>(std::move(node));
  }
  NodePtr Named() {
    Node node{.kind = 'v'};
    const auto in_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    };
    while (at_ < text_.size() && in_name(text_[at_])) node.named.name += text_[at_++];
    if (Peek() != '(') return std::make_shared<Node>(std::move(node));
    do {
      ++at_;  // the parenthesis or a comma
      node.named.arguments.push_back(Argument());
    } while (Peek() == ',');
    Expect(')');
    return std::make_shared<Node>(std::move(node));
  }
  std::string Argument() {
    const bool quoted = Peek() == '"';
    if (quoted) ++at_;
    const size_t begin = at_;
    at_ = text_.find_first_of(quoted ? "\"" : ",)", at_);
    if (at_ == std::string::npos) {
      at_ = text_.size();
      Fail(quoted ? "'\"'" : "')'");
    }
    std::string argument = text_.substr(begin, at_ - begin);
    if (quoted) {
      ++at_;
    } else {
      argument.erase(argument.find_last_not_of(' ') + 1);
    }
    if (argument.empty()) Fail("an argument");
    return argument;
  }

  // Returns the next character that is no blank, or 0 at the end.
  char Peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void Expect(char wanted) {
    if (Peek() != wanted) Fail(fmt::format("'{}'", wanted));
    ++at_;
  }
  [[noreturn]] void Fail(const std::string& wanted) const {
    throw UsageError(
        fmt::format("'{}' is no expression: column {} should have {}", text_, at_ + 1, wanted),
        "an expression has numbers, names, calls like f(A, B), + - * / and parentheses");
  }

  static constexpr int kDeepest = 64;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

double ValueOfNode(const Node& node, const Expression::ValueOf& value_of) {
  if (node.kind == 'n') return node.number;
  if (node.kind == 'v') return value_of(node.named);
  const double left = ValueOfNode(*node.left, value_of);
  if (node.kind == '~') return -left;
  const double right = ValueOfNode(*node.right, value_of);
  switch (node.kind) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    default:
      return left / right;
  }
}

void CollectNames(const Node* node, std::vector<NamedValue>& names) {
  if (node == nullptr) return;
  if (node->kind == 'v') names.push_back(node->named);
  CollectNames(node->left.get(), names);
  CollectNames(node->right.get(), names);
}

}  // namespace

Expression Expression::Parse(const std::string& text) {
  Expression expression;
  expression.text_ = text;
  expression.root_ = ExpressionParser(text).Parse();
  return expression;
}

double Expression::Evaluate(const ValueOf& value_of) const { return ValueOfNode(*root_, value_of); }

std::vector<NamedValue> Expression::names() const {
  std::vector<NamedValue> names;
  CollectNames(root_.get(), names);
  return names;
}

}  // namespace dtrain
