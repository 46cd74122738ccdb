/**
 * An extension that does what a test asks for and keeps what it was told.
 *
 * `/probe {"do": ...}` acts in the session, the `probe` tool is for the model, and PROBE_TRACE names a file that
 * gets one line for each event: the event, what Pi says of itself then, and the deliveries that are entries.
 */
import { appendFileSync } from "node:fs";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";

type Request =
  | { do: "widget"; lines?: string[]; placement?: "aboveEditor" | "belowEditor" }
  | { do: "status"; text?: string }
  | { do: "notify"; text: string }
  | { do: "confirm"; title: string }
  | { do: "message"; text: string; delivery: string; deliverAs?: "steer" | "followUp" | "nextTurn"; triggerTurn?: boolean }
  | { do: "entry"; value: string };

const KEY = "probe";

function deliveries(ctx: ExtensionContext): string[] {
  const found: string[] = [];
  for (const entry of ctx.sessionManager.getEntries()) {
    if (entry.type !== "custom_message") continue;
    const details = entry.details;
    if (typeof details === "object" && details !== null && "delivery" in details) {
      found.push(String(details.delivery));
    }
  }
  return found;
}

export default function probe(pi: ExtensionAPI): void {
  const path = process.env["PROBE_TRACE"];

  const trace = (event: string, ctx: ExtensionContext, more: Record<string, unknown> = {}): void => {
    if (path === undefined) return;
    const line = {
      event,
      mode: ctx.mode,
      idle: ctx.isIdle(),
      pending: ctx.hasPendingMessages(),
      leaf: ctx.sessionManager.getLeafId(),
      deliveries: deliveries(ctx),
      ...more,
    };
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  };

  const act = async (request: Request, ctx: ExtensionContext): Promise<void> => {
    switch (request.do) {
      case "widget":
        ctx.ui.setWidget(KEY, request.lines, { placement: request.placement ?? "aboveEditor" });
        return;
      case "status":
        ctx.ui.setStatus(KEY, request.text);
        return;
      case "notify":
        ctx.ui.notify(request.text, "info");
        return;
      case "confirm":
        ctx.ui.notify(`confirmed: ${await ctx.ui.confirm(request.title, "Yes or no?")}`, "info");
        return;
      case "entry":
        pi.appendEntry(KEY, { value: request.value });
        return;
      case "message":
        pi.sendMessage(
          { customType: KEY, content: request.text, display: true, details: { delivery: request.delivery } },
          {
            ...(request.deliverAs === undefined ? {} : { deliverAs: request.deliverAs }),
            ...(request.triggerTurn === undefined ? {} : { triggerTurn: request.triggerTurn }),
          },
        );
        trace("sent", ctx, { delivery: request.delivery });
    }
  };

  pi.on("session_start", (event, ctx) => trace(event.type, ctx, { reason: event.reason }));
  pi.on("session_shutdown", (event, ctx) => trace(event.type, ctx, { reason: event.reason }));
  pi.on("agent_start", (event, ctx) => trace(event.type, ctx));
  pi.on("agent_end", (event, ctx) => trace(event.type, ctx));
  pi.on("agent_before_settle", (event, ctx) => trace(event.type, ctx));
  pi.on("agent_settled", (event, ctx) => trace(event.type, ctx, { aborted: event.aborted }));
  pi.on("turn_start", (event, ctx) => trace(event.type, ctx));
  pi.on("turn_end", (event, ctx) => trace(event.type, ctx, { outcome: event.outcome }));
  pi.on("message_end", (event, ctx) => trace(event.type, ctx, { role: event.message.role }));
  pi.on("tool_execution_end", (event, ctx) => trace(event.type, ctx, { isError: event.isError }));

  pi.registerTool({
    name: "probe",
    label: "Probe",
    description: "Return the text, or wait until the turn is aborted.",
    parameters: Type.Object({ text: Type.String(), wait: Type.Optional(Type.Boolean()) }),
    async execute(_id, params, signal) {
      if (params.wait === true) {
        await new Promise<void>((resolve) => {
          // A pending promise alone does not keep Node alive in the modes that end by themselves.
          const alive = setInterval(() => undefined, 1_000);
          signal?.addEventListener("abort", () => {
            clearInterval(alive);
            resolve();
          });
        });
        throw new Error("aborted");
      }
      return { content: [{ type: "text", text: `probed ${params.text}` }], details: { text: params.text } };
    },
  });

  pi.registerCommand("probe", {
    description: "Do what the JSON says",
    handler: (args, ctx) => act(JSON.parse(args) as Request, ctx),
  });

  pi.registerShortcut("ctrl+shift+w", {
    description: "Clear the probe's widget",
    handler: (ctx) => ctx.ui.setWidget(KEY, undefined),
  });
}
