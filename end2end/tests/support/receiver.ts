// Somebody outside who is told: a plain HTTP server that remembers what came, and answers as it is set to.

import { once } from "node:events";
import { createServer, type Server } from "node:http";

export interface Message {
  signature: string;
  body: { type: string; data: Record<string, string> };
}

export class Receiver {
  readonly got: Message[] = [];
  answer = 204;

  private constructor(
    private readonly server: Server,
    /** `127.0.0.1:PORT` */
    readonly host: string,
  ) {}

  static async start(): Promise<Receiver> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (!address || typeof address === "string") throw new Error("no port");
    const receiver = new Receiver(server, `127.0.0.1:${address.port}`);
    server.on("request", async (request, response) => {
      let text = "";
      for await (const chunk of request) text += chunk;
      receiver.got.push({ signature: String(request.headers["webhook-signature"]), body: JSON.parse(text) });
      response.writeHead(receiver.answer).end();
    });
    return receiver;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}
