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
    about: 'create runs, wait for them, print or download the results',
    load: () => import('./run.js'),
  },
  { name: 'status', about: 'show the current status of runs', load: () => import('./status.js') },
  { name: 'wait', about: 'wait for runs that were created earlier', load: () => import('./wait.js') },
  {
    name: 'download',
    about: 'download the outputs of finished runs again',
    load: () => import('./download.js'),
  },
  { name: 'list', about: 'list the runs created on this machine', load: () => import('./list.js') },
  { name: 'show', about: 'show everything known of one run', load: () => import('./show.js') },
  { name: 'forget', about: 'remove runs from the journal', load: () => import('./forget.js') },
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
