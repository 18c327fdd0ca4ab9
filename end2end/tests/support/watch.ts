// What a page says that nobody should have to read: the console, uncaught errors, dialogs, crashes.
// Breaches of the page's policy are console errors in Chromium; so is a panic of the WASM side.

import type { ConsoleMessage, Page } from "@playwright/test";

export class Watch {
  private readonly heard: string[] = [];
  private readonly allowed: RegExp[] = [];

  constructor(page: Page) {
    page.on("console", (message) => this.console(message));
    page.on("pageerror", (error) => this.heard.push(`uncaught: ${error.stack ?? error.message}`));
    page.on("crash", () => this.heard.push("the page crashed"));
    page.on("dialog", (dialog) => {
      this.heard.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  /** What a test brings about on purpose, such as the status of a page that is not there. */
  allow(words: RegExp): void {
    this.allowed.push(words);
  }

  /** Everything heard so far that nobody allowed. */
  problems(): string[] {
    return this.heard.filter((line) => !this.allowed.some((words) => words.test(line)));
  }

  private console(message: ConsoleMessage): void {
    const type = message.type();
    const text = message.text();
    if (type === "error" || type === "warning" || /panicked at/.test(text)) {
      const { url } = message.location();
      this.heard.push(`${type}: ${text} (${url})`);
    }
  }
}
