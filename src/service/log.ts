/** What the parts of the service tell their log: fields and a sentence. Never a key, and no prompt unless asked for. */
export interface Log {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
}

export const silentLog: Log = { error() {}, warn() {}, info() {} }
