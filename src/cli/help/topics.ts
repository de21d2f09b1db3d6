/** The topics of `rushes help` beside the commands. Each text is loaded on demand. */

export interface Topic {
  readonly name: string
  readonly about: string
  text(): Promise<string>
}

export const TOPICS: readonly Topic[] = [
  {
    name: 'exit-codes',
    about: 'Exit codes and what to do about each',
    text: async () => (await import('./exit-codes.js')).exitCodes(),
  },
  {
    name: 'environment',
    about: 'Settings, environment variables and the API key',
    text: async () => (await import('./environment.js')).environment(),
  },
  {
    name: 'scripting',
    about: 'Output formats and recipes for scripts',
    text: async () => (await import('./scripting.js')).SCRIPTING,
  },
  {
    name: 'agents',
    about: 'A short reference for language models',
    text: async () => (await import('./agents.js')).agents(),
  },
]
