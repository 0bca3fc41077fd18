// Answers questions as a page does: `node page.mjs MODULE QUESTIONS`, a file of JSON with the data of
// a page and a list of questions. Prints the answers, the lines of Python, and milliseconds.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [module, questions] = process.argv.slice(2);
const { read, python, inWords } = await import(pathToFileURL(module));
const asked = JSON.parse(readFileSync(questions, "utf8"));
const started = performance.now();
const release = Object.assign(await read(asked.data), { title: "" });
const opened = performance.now() - started;
const found = asked.questions.map((question) => {
  question.where = new Map(question.where);
  const refused = release.refuse(question);
  if (refused) return { refused };
  const before = performance.now();
  const answer = release.answer(question);
  const took = performance.now() - before;
  const cells = answer.cells || [answer];
  const ends = cells.map(({ value, std, lower, upper }) => [value, std, lower, upper]);
  return { cells: ends, text: answer.text, python: python(release, question), took, words: inWords(release, question, answer) };
});
console.log(JSON.stringify({ found, opened }));
