import { SkeletonLines } from '../components/notice.js'
import { Page } from '../components/page.js'

export function RunPage(_: { readonly id: string }) {
  return (
    <Page title="Run">
      <SkeletonLines />
    </Page>
  )
}
