/** Starts one PostgreSQL for all files of the project `postgres`, whose services use it instead of SQLite. */
import type { TestProject } from 'vitest/node'
import { startPostgres } from '../postgres-server.js'

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL of the maintenance database. Undefined in all other projects. */
    postgresUrl?: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres()
  project.provide('postgresUrl', server.url)
  return server.stop
}
