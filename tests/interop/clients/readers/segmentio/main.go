// Reads partition 0 of a topic from its beginning with kafka-go: segmentio BOOTSTRAP TOPIC. Prints the offset of each record.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{os.Args[1]}, Topic: os.Args[2], MaxWait: 500 * time.Millisecond, MaxBytes: 16 << 20, StartOffset: kafka.FirstOffset})
	for {
		message, err := reader.ReadMessage(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Println(message.Offset)
	}
}
