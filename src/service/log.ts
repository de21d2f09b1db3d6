/** The service's log: fields and a sentence. Never a key; a prompt only with `--log-prompts`. */
export interface Log {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
}

export const silentLog: Log = { error() {}, warn() {}, info() {} }
