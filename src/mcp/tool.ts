/** What a tool of the server is: its definition as data, and the function that carries a call out. */

export type JsonSchema = Readonly<Record<string, unknown>>

export interface ToolDefinition {
  readonly name: string
  readonly title: string
  /** For the agent: what it does, what it costs, and what to do next. */
  readonly description: string
  readonly inputSchema: ObjectSchema
  readonly outputSchema: ObjectSchema
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
}

export interface ObjectSchema extends JsonSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
}

export type Arguments = Readonly<Record<string, unknown>>

export interface Call {
  /** Checked against the input schema. */
  readonly args: Arguments
  /** Aborted when the client cancels the call, and when it disconnects. */
  readonly signal: AbortSignal
  /** Says how far the call is; ignored unless the client asked for it. */
  progress(message: string): void
}

/** A file that a call has written or found. */
export interface ResultFile {
  /** Absolute. */
  readonly path: string
  readonly bytes: number
  readonly content_type: string
}

export interface Answer {
  /** A few lines for the agent. */
  readonly text: string
  readonly structured: Readonly<Record<string, unknown>>
  readonly files?: readonly ResultFile[]
  /** Whether the content of small files is part of the result. */
  readonly inline?: boolean
  readonly isError?: boolean
}

export type Tools = readonly { readonly definition: ToolDefinition; call(call: Call): Promise<Answer> }[]
