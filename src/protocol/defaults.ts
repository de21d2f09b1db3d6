/** The defaults of flags and settings, as they are typed. Help, docs, action.yml and the program take them from here. */
import { MAX_BODY_BYTES } from './limits.js'

export const DEFAULTS = {
  timeout: '30m',
  count: '1',
  /** More runs than these need a confirmation on a terminal. */
  unaskedRuns: '20',
  listLimit: '50',
  spendGrouping: 'model',
  galleryPage: 'gallery.html',
  /** Runs that a session of `rushes mcp` may create. */
  sessionRuns: '20',
  host: '127.0.0.1',
  port: '7878',
  bodyLimit: `${MAX_BODY_BYTES / 1024 / 1024}MiB`,
  role: 'all',
} as const
