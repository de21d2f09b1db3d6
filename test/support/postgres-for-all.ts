/** One PostgreSQL for all files of `npm run test:postgres`. */
import { startPostgres } from './postgres-server.js'

export default async function setup(): Promise<() => Promise<void>> {
  const server = await startPostgres()
  // The processes of the files inherit it.
  process.env.TEST_POSTGRES_URL = server.url
  return server.stop
}
