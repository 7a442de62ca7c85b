// What is copied from a Python session is the code alone: no prompts, no results.
function code(session) {
  return session
    .split("\n")
    .filter((line) => /^(>>>|\.\.\.)( |$)/.test(line))
    .map((line) => line.slice(4))
    .join("\n");
}

document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest(".md-clipboard, .md-code__button");
    const block = button && button.closest(".highlight, pre")?.querySelector("code");
    if (!block || !/^>>> /m.test(block.textContent)) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    navigator.clipboard.writeText(code(block.textContent));
  },
  true,
);
