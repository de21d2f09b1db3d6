import { SkeletonLines } from '../components/notice.js'
import { Page } from '../components/page.js'

export function RunsPage(_: { readonly query: Readonly<Record<string, string>> }) {
  return (
    <Page title="Runs">
      <SkeletonLines />
    </Page>
  )
}
