/** The topics of `rushes help` beside the commands. Each text is loaded on demand. */
import { plainWords } from '../flags/globals.js'

export interface Topic {
  readonly name: string
  readonly about: string
  text(): Promise<string>
}

export const TOPICS: readonly Topic[] = [
  {
    name: 'exit-codes',
    about: 'what each exit code means, and what a script does about it',
    text: async () => (await import('./exit-codes.js')).exitCodes(),
  },
  {
    name: 'environment',
    about: 'the settings and variables, and where the API key comes from',
    text: async () => (await import('./environment.js')).environment(),
  },
  {
    name: 'scripting',
    about: 'what is printed where, and recipes for scripts',
    text: async () => (await import('./scripting.js')).SCRIPTING,
  },
  {
    name: 'agents',
    about: 'the whole contract in few words, for a language model',
    text: async () => (await import('./agents.js')).agents(),
  },
]

/** The word of `rushes help <word>`; global flags may come before it. */
export function wordAfterHelp(argv: readonly string[]): string | undefined {
  const [first, second] = plainWords(argv)
  return first === 'help' ? second : undefined
}
