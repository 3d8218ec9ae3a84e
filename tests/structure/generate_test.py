"""docs/api/generate.py shows a name's own use, not that of another which is called the same."""
import importlib.util
import pathlib
import unittest

PATH = pathlib.Path(__file__).parents[2] / "docs" / "api" / "generate.py"
SPEC = importlib.util.spec_from_file_location("generate", PATH)
generate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(generate)


def example_of(code, name, kind, owner):
    """What is found in these lines, or what is said where there is nothing."""
    reference = generate.Reference()
    reference.examples.files = [("examples/one.cpp", code.splitlines())]
    return reference.example(name, kind, owner, link=False) or reference.wrong[0]


class Generate(unittest.TestCase):
    def test_a_field_of_options_is_shown_where_they_are_given(self):
        code = '''
run(train, {.target = 0.88});
auto houses = paceline::csv("houses.csv",
                            {.target = "price"});
'''
        self.assertIn('"price"', example_of(code, "target", "variable", "CsvOptions"))
        self.assertIn("0.88", example_of(code, "target", "variable", "RunOptions"))
        self.assertIn("has no example", example_of(code.replace("csv", "rows"), "target", "variable", "CsvOptions"))

    def test_fields_that_others_have_too_are_told_apart(self):
        code = '''
auto counter = paceline::create<Counter>({.name = "counter"});
  const paceline::Metric metric{.name = "perplexity"};
return {.metric = {"error", paceline::minimise}};
mine.metric = [](const paceline::Model& model) { return 1; };
loss(batch->data);
use(batch.data);
'''
        self.assertIn("perplexity", example_of(code, "name", "variable", "Metric"))
        self.assertIn("counter", example_of(code, "name", "variable", "ActorOptions"))
        self.assertIn("mine", example_of(code, "metric", "variable", "Trainer"))
        self.assertIn("use", example_of(code, "data", "variable", "Batch"))

    def test_a_class_needs_an_example(self):
        reference = generate.Reference()
        reference.examples.files = [("examples/one.cpp", ["auto batches = me.batches(data);"])]
        self.assertIn("me.batches(data)", reference.class_example("Batches"))
        self.assertEqual(reference.wrong, [])
        self.assertEqual(reference.class_example("Stopped"), "")
        self.assertIn("Stopped has no example", reference.wrong[0])


if __name__ == "__main__":
    unittest.main()
