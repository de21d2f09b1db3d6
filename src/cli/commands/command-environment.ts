/** What a command's `register` is given beside its commander object. */
import type { Command } from 'commander'
import type { CommandNeeds, Context } from '../context/context.js'

export interface CommandEnvironment {
  /** Receives help and the version. */
  print(text: string): void
  /** Width of the terminal that shows the help; undefined when it is not a terminal. */
  columns?(): number | undefined
  /** Runs the command's own function with a context and keeps its exit code. */
  run(command: Command, work: (ctx: Context) => Promise<number>, needs?: CommandNeeds): Promise<void>
}
