/** The commands, in the order of the help. Adding one is one file and one line here. */
import type { Command } from 'commander'
import type { CommandEnvironment } from './command-environment.js'

export interface CommandRow {
  readonly name: string
  readonly about: string
  /** Loads the file of the command, a chunk of its own, when the command is used. */
  load(): Promise<{ register(command: Command, environment: CommandEnvironment): void }>
}

export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'run',
    about: 'create a run, wait for it, print or download what came out',
    load: () => import('./run.js'),
  },
  { name: 'status', about: 'one look at each run', load: () => import('./status.js') },
  { name: 'wait', about: 'wait for runs that were created earlier', load: () => import('./wait.js') },
  {
    name: 'download',
    about: 'fetch the outputs of finished runs again',
    load: () => import('./download.js'),
  },
  { name: 'list', about: 'the runs this machine knows', load: () => import('./list.js') },
  { name: 'forget', about: 'drop unconfirmed rows from the journal', load: () => import('./forget.js') },
  {
    name: 'batch',
    about: 'make what is missing or stale of a manifest, and nothing else',
    load: () => import('./batch.js'),
  },
  { name: 'models', about: 'what the models take', load: () => import('./models.js') },
  { name: 'login', about: 'store the API key', load: () => import('./login.js') },
  { name: 'logout', about: 'forget the stored API key', load: () => import('./logout.js') },
  { name: 'config', about: 'read and change the settings', load: () => import('./config.js') },
  {
    name: 'doctor',
    about: 'is everything in place? settings, network, key, disk, journal',
    load: () => import('./doctor.js'),
  },
  { name: 'serve', about: 'the local service', load: () => import('./serve.js') },
  {
    name: 'admin',
    about: 'accounts, keys and balances of a local service',
    load: () => import('./admin.js'),
  },
  {
    name: 'completion',
    about: 'completion for bash, zsh or fish',
    load: () => import('./completion.js'),
  },
]
