// Reads partition 0 of a topic from its beginning with franz-go: franz BOOTSTRAP TOPIC. Prints the offset of each record.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	from := map[string]map[int32]kgo.Offset{os.Args[2]: {0: kgo.NewOffset().AtStart()}}
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ConsumePartitions(from), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		panic(err)
	}
	for {
		fetches := client.PollFetches(context.Background())
		fetches.EachError(func(topic string, partition int32, err error) { panic(err) })
		fetches.EachRecord(func(record *kgo.Record) { fmt.Println(record.Offset) })
	}
}
